// Chooses a run's exchange and coding: once, at the proposer, for all members (it travels in Commit). Pure.
//
//   exchange  direct up to two members, sharded from three: an owner's sums are fewer bits than all codes
//   coding    raw where the slowest link is faster than kRawMbps for each thread of the exchange: there coding takes
//             longer than the bits that it saves; entropy below, and where no link was measured
//
// The job's own choice comes before this rule. Over a grid of the forecast the rule is on average within half a
// percent of the best choice (tests/forecast/rule_test.cpp). Links are measured before every run and come with votes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schema/choices.h"
#include "schema/frame/frame.h"
#include "schema/limits.h"
#include "schema/options/job.h"

namespace tg::daemon {

inline constexpr double kRawMbps = 700;

// Share of a line's rate that TCP payload gets: 1448 bytes of every 1538 with frame gaps, headers and time stamps.
inline constexpr double kPayloadShare = 1448.0 / 1538;

struct ExchangePreference {
  std::optional<schema::ExchangeKind> exchange;  // none = auto
  std::optional<schema::Coding> coding;          // none = auto
  double link_mbps = 0;  // the line's rate if the job gives it; 0 = the payload rate is measured
};

// If members keep their own scalers, an owner cannot sum their codes: such a job gets a direct exchange.
ExchangePreference exchange_preference(const schema::JobSpec& job);
bool allowed(const ExchangePreference& asked, schema::ExchangeKind exchange, schema::Coding coding);

struct ExchangeChoice {
  schema::Commit commit;
  std::string why;       // one sentence for people
  double link_mbps = 0;  // slowest_link
};
// votes: accepted ones of all members, by rank. The slowest link and the fewest threads count.
ExchangeChoice choose_exchange(const ExchangePreference& asked, const std::vector<schema::Vote>& votes);
double slowest_link(const ExchangePreference& asked, const std::vector<schema::Vote>& votes);  // Mbit/s; 0 = not known

// What may be in flight to one peer: kQueuedSeconds of the slowest link over all peers together. With more, the bucket
// that the next forward pass begins with would wait behind what is queued. With less, the link would be idle while a
// node is busy with something else.
inline constexpr double kQueuedSeconds = 4e-3;
std::uint64_t window_for(double link_mbps, std::size_t members);
// About kChunkSeconds of the slowest link at a bit per parameter: nothing is left to do while the last chunk travels.
inline constexpr double kChunkSeconds = 1e-3;
std::uint64_t chunk_for(double link_mbps);

}  // namespace tg::daemon

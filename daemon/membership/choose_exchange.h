// Which exchange and which coding a run uses: chosen once, by the proposer, for all (it travels in Commit). Pure.
//
// Wire and kernels of a step overlap, but for its beginning and its end, and the trips cannot be hidden:
//   seconds(choice) = longer + kBare * shorter of (sent bits / slowest link, slowest member's kernels) + trips *
//   kTripSeconds
// direct needs one trip behind the last bucket, sharded two. Links and kernels are measured before every run and come
// with the votes (schema::Vote). Without a measurement: direct up to two members, sharded from three, entropy-coded.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "schema/frame/frame.h"
#include "schema/limits.h"
#include "schema/options/job.h"

namespace tg::daemon {

// The order of Vote::codec_seconds and Vote::sent_bits.
inline constexpr std::array<schema::Commit, 4> kChoices = {{
    {schema::ExchangeKind::kDirect, schema::Coding::kRaw, schema::kMostWindowBytes, schema::kLargeChunkParameters},
    {schema::ExchangeKind::kDirect, schema::Coding::kEntropy, schema::kMostWindowBytes, schema::kLargeChunkParameters},
    {schema::ExchangeKind::kSharded, schema::Coding::kRaw, schema::kMostWindowBytes, schema::kLargeChunkParameters},
    {schema::ExchangeKind::kSharded, schema::Coding::kEntropy, schema::kMostWindowBytes, schema::kLargeChunkParameters},
}};
inline constexpr double kTripSeconds = 300e-6;  // a frame to every peer and its handling, on a switched LAN

struct Asked {
  std::string_view exchange = "auto";  // auto | direct | sharded
  std::string_view coding = "auto";    // auto | raw | entropy
  double link_mbps = 0;                // told by the job; 0 = as measured
};

// Scalers of each member's own cannot be summed by an owner: such a job asks for a direct exchange.
Asked asked_of(const schema::JobSpec& job);
bool allowed(const Asked& asked, const schema::Commit& choice);

// Predicted seconds of one step's exchange with this choice. Wire and kernels overlap, but a step begins with kernels
// only and ends so: of the shorter of the two kBare remains.
struct ExchangePrediction {
  static constexpr double kBare = 0.25;
  double wire = 0, codec = 0, trips = 0;
  double total() const { return (wire > codec ? wire + kBare * codec : codec + kBare * wire) + trips; }
};
ExchangePrediction predict_exchange(std::size_t choice, double link_mbps, const std::vector<schema::Vote>& votes);

// votes: of all members, by rank; link_mbps of the slowest counts.
schema::Commit choose_exchange(const Asked& asked, const std::vector<schema::Vote>& votes);
double slowest_link(const Asked& asked, const std::vector<schema::Vote>& votes);

// What may be on its way to one peer: kQueuedSeconds of the slowest link over all peers together. What is queued cannot
// be overtaken by the bucket that the next forward pass begins with, and what is not queued leaves the link idle while
// a node looks elsewhere.
inline constexpr double kQueuedSeconds = 4e-3;
std::uint64_t window_for(double link_mbps, std::size_t members);
// About kChunkSeconds of the slowest link at a bit per parameter: the last chunk's way cannot be overlapped.
inline constexpr double kChunkSeconds = 1e-3;
std::uint64_t chunk_for(double link_mbps);

}  // namespace tg::daemon

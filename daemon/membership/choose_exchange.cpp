#include "daemon/membership/choose_exchange.h"

#include <algorithm>
#include <cmath>

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;

std::string whole(double value) { return std::to_string(std::llround(value)); }

std::uint16_t fewest_workers(const std::vector<schema::Vote>& votes) {
  std::uint16_t fewest = 0;
  for (const schema::Vote& vote : votes) fewest = fewest == 0 ? vote.workers : std::min(fewest, vote.workers);
  return std::max<std::uint16_t>(fewest, 1);
}

ExchangeKind exchange_of(const ExchangePreference& asked, std::size_t members, std::string& why) {
  if (asked.exchange && members > 1) {
    why = std::string(to_word(*asked.exchange)) + " as the job says";
    return *asked.exchange;
  }
  const ExchangeKind exchange = members <= 2 ? ExchangeKind::kDirect : ExchangeKind::kSharded;
  why = std::string(to_word(exchange)) + (members == 1   ? " for one member"
                                          : members == 2 ? " between two members"
                                                         : " among " + std::to_string(members) + " members");
  return exchange;
}

Coding coding_of(const ExchangePreference& asked, double link, std::uint16_t workers, std::string& why) {
  if (asked.coding) {
    why += std::string(", ") + to_word(*asked.coding) + " as the job says";
    return *asked.coding;
  }
  if (link <= 0) {
    why += ", entropy where no link was measured";
    return Coding::kEntropy;
  }
  const double limit = kRawMbps * workers;
  const Coding coding = link > limit ? Coding::kRaw : Coding::kEntropy;
  why += ", " + std::string(to_word(coding)) + " at " + whole(link) + " Mbit/s, which is " +
         (coding == Coding::kRaw ? "more" : "not more") + " than " + whole(limit) + " (" + whole(kRawMbps) +
         " for each of " + std::to_string(workers) + (workers == 1 ? " thread)" : " threads)");
  return coding;
}

}  // namespace

ExchangePreference exchange_preference(const schema::JobSpec& job) {
  const bool own_scalers = job.scaler_sharing == schema::ScalerSharing::kNone;
  return {own_scalers ? ExchangeKind::kDirect : job.exchange, job.coding, job.link_mbps};
}

bool allowed(const ExchangePreference& asked, ExchangeKind exchange, Coding coding) {
  return asked.exchange.value_or(exchange) == exchange && asked.coding.value_or(coding) == coding;
}

double slowest_link(const ExchangePreference& asked, const std::vector<schema::Vote>& votes) {
  if (asked.link_mbps > 0) return asked.link_mbps;
  double slowest = 0;
  for (const schema::Vote& vote : votes) {
    if (vote.link_mbps <= 0) return 0;
    slowest = slowest == 0 ? vote.link_mbps : std::min(slowest, vote.link_mbps);
  }
  return slowest;
}

std::uint64_t window_for(double link_mbps, std::size_t members) {
  if (link_mbps <= 0 || members < 2) return schema::kMaxWindowBytes;
  const double bytes = link_mbps * 1e6 / 8 * kQueuedSeconds / static_cast<double>(members - 1);
  return static_cast<std::uint64_t>(
      std::clamp(bytes, static_cast<double>(schema::kMinWindowBytes), static_cast<double>(schema::kMaxWindowBytes)));
}

std::uint64_t chunk_for(double link_mbps) {
  if (link_mbps <= 0) return schema::kLargeChunkParameters;
  return static_cast<std::uint64_t>(std::clamp(link_mbps * 1e6 * kChunkSeconds,
                                               static_cast<double>(schema::kSmallChunkParameters),
                                               static_cast<double>(schema::kLargeChunkParameters)));
}

ExchangeChoice choose_exchange(const ExchangePreference& asked, const std::vector<schema::Vote>& votes) {
  const double link = slowest_link(asked, votes);
  ExchangeChoice choice;
  choice.commit.exchange = exchange_of(asked, votes.size(), choice.why);
  const double payload = asked.link_mbps > 0 ? asked.link_mbps * kPayloadShare : link;
  choice.commit.coding = coding_of(asked, payload, fewest_workers(votes), choice.why);
  choice.commit.window_bytes = window_for(link, votes.size());
  choice.commit.chunk_parameters = chunk_for(link);
  choice.link_mbps = link;
  return choice;
}

}  // namespace tg::daemon

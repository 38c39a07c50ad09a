#include "daemon/membership/choose_exchange.h"

#include <algorithm>

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;

bool measured(const std::vector<schema::Vote>& votes) {
  return std::all_of(votes.begin(), votes.end(), [](const schema::Vote& vote) {
    return vote.codec_seconds.size() == kChoices.size() && vote.sent_bits.size() == kChoices.size();
  });
}

schema::Commit by_rule(const Asked& asked, std::size_t members) {
  schema::Commit choice{members <= 2 ? ExchangeKind::kDirect : ExchangeKind::kSharded, Coding::kEntropy};
  if (asked.exchange != "auto")
    choice.exchange = asked.exchange == "direct" ? ExchangeKind::kDirect : ExchangeKind::kSharded;
  if (asked.coding != "auto") choice.coding = asked.coding == "raw" ? Coding::kRaw : Coding::kEntropy;
  return choice;
}

schema::Commit choose(const Asked& asked, double link_mbps, const std::vector<schema::Vote>& votes) {
  if (link_mbps <= 0 || !measured(votes)) return by_rule(asked, votes.size());
  const schema::Commit* best = nullptr;
  double best_seconds = 0;
  for (std::size_t i = 0; i < kChoices.size(); ++i) {
    if (!allowed(asked, kChoices[i])) continue;
    const double seconds = predict_exchange(i, link_mbps, votes).total();
    if (best != nullptr && seconds >= best_seconds) continue;
    best = &kChoices[i];
    best_seconds = seconds;
  }
  return *best;
}

}  // namespace

Asked asked_of(const schema::JobSpec& job) {
  return {job.scaler_sharing == "none" ? std::string_view("direct") : std::string_view(job.exchange), job.coding,
          job.link_mbps};
}

bool allowed(const Asked& asked, const schema::Commit& choice) {
  if (asked.exchange == "direct" && choice.exchange != ExchangeKind::kDirect) return false;
  if (asked.exchange == "sharded" && choice.exchange != ExchangeKind::kSharded) return false;
  if (asked.coding == "raw" && choice.coding != Coding::kRaw) return false;
  return asked.coding != "entropy" || choice.coding == Coding::kEntropy;
}

double slowest_link(const Asked& asked, const std::vector<schema::Vote>& votes) {
  if (asked.link_mbps > 0) return asked.link_mbps;
  double slowest = 0;
  for (const schema::Vote& vote : votes) {
    if (vote.link_mbps <= 0) return 0;
    slowest = slowest == 0 ? vote.link_mbps : std::min(slowest, vote.link_mbps);
  }
  return slowest;
}

ExchangePrediction predict_exchange(std::size_t choice, double link_mbps, const std::vector<schema::Vote>& votes) {
  ExchangePrediction prediction;
  for (const schema::Vote& vote : votes) {
    prediction.codec = std::max(prediction.codec, vote.codec_seconds[choice]);
    prediction.wire = std::max(prediction.wire, vote.sent_bits[choice] / (link_mbps * 1e6));
  }
  prediction.trips = kTripSeconds * (kChoices[choice].exchange == ExchangeKind::kSharded ? 2 : 1);
  return prediction;
}

std::uint64_t window_for(double link_mbps, std::size_t members) {
  if (link_mbps <= 0 || members < 2) return schema::kMostWindowBytes;
  const double bytes = link_mbps * 1e6 / 8 * kQueuedSeconds / static_cast<double>(members - 1);
  return static_cast<std::uint64_t>(
      std::clamp(bytes, static_cast<double>(schema::kLeastWindowBytes), static_cast<double>(schema::kMostWindowBytes)));
}

std::uint64_t chunk_for(double link_mbps) {
  if (link_mbps <= 0) return schema::kLargeChunkParameters;
  return static_cast<std::uint64_t>(std::clamp(link_mbps * 1e6 * kChunkSeconds,
                                               static_cast<double>(schema::kSmallChunkParameters),
                                               static_cast<double>(schema::kLargeChunkParameters)));
}

schema::Commit choose_exchange(const Asked& asked, const std::vector<schema::Vote>& votes) {
  const double link = slowest_link(asked, votes);
  schema::Commit choice = choose(asked, link, votes);
  choice.window_bytes = window_for(link, votes.size());
  choice.chunk_parameters = chunk_for(link);
  return choice;
}

}  // namespace tg::daemon

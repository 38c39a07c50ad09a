#include "daemon/membership/last_words.h"

#include <limits>
#include <utility>

namespace tg::daemon {

std::vector<Seat> LastWords::broken() const {
  std::vector<Seat> seats;
  for (const auto& [seat, broken] : broken_) seats.push_back(seat);
  return seats;
}

bool LastWords::came_back(Seat peer) {
  const auto found = broken_.find(peer);
  if (found == broken_.end()) return false;
  found->second.gone.up_again = true;
  found->second.patience_ms = kPatienceMs;
  return true;
}

std::vector<LastWords::Gone> LastWords::take_due(std::uint64_t now_ms) {
  std::vector<Gone> due;
  for (auto at = broken_.begin(); at != broken_.end();) {
    const bool waits = now_ms - at->second.since_ms < at->second.patience_ms;
    if (!waits) due.push_back(std::move(at->second.gone));
    at = waits ? std::next(at) : broken_.erase(at);
  }
  return due;
}

std::vector<LastWords::Gone> LastWords::take_all() { return take_due(std::numeric_limits<std::uint64_t>::max()); }

}  // namespace tg::daemon

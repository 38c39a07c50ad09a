#include "daemon/node/last_words.h"

#include <limits>
#include <utility>

namespace tg::daemon {

bool LastWords::came_back(Seat peer) {
  const auto found = broken_.find(peer);
  if (found == broken_.end()) return false;
  found->second.gone.up_again = true;
  return true;
}

std::vector<LastWords::Gone> LastWords::take_due(std::uint64_t now_ms) {
  std::vector<Gone> due;
  for (auto at = broken_.begin(); at != broken_.end();) {
    const bool waits = now_ms - at->second.since_ms < kPatienceMs;
    if (!waits) due.push_back(std::move(at->second.gone));
    at = waits ? std::next(at) : broken_.erase(at);
  }
  return due;
}

std::vector<LastWords::Gone> LastWords::take_all() { return take_due(std::numeric_limits<std::uint64_t>::max()); }

}  // namespace tg::daemon

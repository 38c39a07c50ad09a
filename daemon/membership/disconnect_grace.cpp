#include "daemon/membership/disconnect_grace.h"

#include <limits>
#include <utility>

namespace tg::daemon {

std::vector<Seat> DisconnectGrace::disconnected() const {
  std::vector<Seat> seats;
  for (const auto& [seat, broken] : disconnects_) seats.push_back(seat);
  return seats;
}

bool DisconnectGrace::on_reconnected(Seat peer) {
  const auto found = disconnects_.find(peer);
  if (found == disconnects_.end()) return false;
  found->second.disconnect.up_again = true;
  found->second.grace_ms = kGraceMs;
  return true;
}

std::vector<DisconnectGrace::Disconnect> DisconnectGrace::take_due(std::uint64_t now_ms) {
  std::vector<Disconnect> due;
  for (auto at = disconnects_.begin(); at != disconnects_.end();) {
    const bool waits = now_ms - at->second.since_ms < at->second.grace_ms;
    if (!waits) due.push_back(std::move(at->second.disconnect));
    at = waits ? std::next(at) : disconnects_.erase(at);
  }
  return due;
}

std::vector<DisconnectGrace::Disconnect> DisconnectGrace::take_all() {
  return take_due(std::numeric_limits<std::uint64_t>::max());
}

}  // namespace tg::daemon

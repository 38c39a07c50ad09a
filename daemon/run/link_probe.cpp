#include "daemon/run/link_probe.h"

#include <algorithm>

namespace tg::daemon {

LinkProbe::LinkProbe(std::size_t members, std::size_t self)
    : members_(members), self_(self), missing_(members), done_(members < 2) {}

std::optional<LinkProbe::Burst> LinkProbe::start(double now_seconds) {
  if (done_ || running_) return std::nullopt;
  return begin(1, kFirstBytes, now_seconds);
}

LinkProbe::Burst LinkProbe::begin(std::uint32_t number, std::size_t bytes, double now_seconds) {
  running_ = true;
  number_ = number;
  started_ = now_seconds;
  missing_.assign(members_, true);
  missing_[self_] = false;
  const std::size_t peers = members_ - 1;
  const std::size_t frames = std::max<std::size_t>(1, bytes / kFrameBytes / peers);
  bytes_ = frames * kFrameBytes * peers;
  return {number, frames};
}

std::optional<LinkProbe::Burst> LinkProbe::replied(std::size_t rank, std::uint32_t burst, double now_seconds) {
  if (done_ || !running_ || burst != number_ || rank >= members_) return std::nullopt;
  missing_[rank] = false;
  if (std::find(missing_.begin(), missing_.end(), true) != missing_.end()) return std::nullopt;
  const double seconds = std::max(now_seconds - started_, 1e-6);
  mbps_ = static_cast<double>(bytes_) * 8e-6 / seconds;
  if (number_ == 1 && seconds < kShortSeconds) return begin(2, kSecondBytes, now_seconds);
  done_ = true;
  return std::nullopt;
}

void LinkProbe::tick(double now_seconds) {
  if (!done_ && running_ && now_seconds - started_ > kPatienceSeconds) done_ = true;
}

}  // namespace tg::daemon

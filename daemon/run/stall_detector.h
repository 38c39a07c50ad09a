// The stall detector notices that a run makes no progress on this node. Time in which the process was stopped does not
// count. The owner provides the time; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace tg::daemon {

class StallDetector {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kMaxTickGap{500};  // a longer gap means that the process was stopped

  // progress: a count that grows with any progress. Returns for how long it has not grown.
  Clock::duration tick(Clock::time_point now, std::uint64_t progress) {
    const bool slept = now - std::exchange(ticked_, now) > kMaxTickGap;
    if (std::exchange(progress_, progress) != progress || slept) since_ = now;
    return now - since_;
  }

 private:
  Clock::time_point ticked_{}, since_{};
  std::uint64_t progress_ = 0;
};

}  // namespace tg::daemon

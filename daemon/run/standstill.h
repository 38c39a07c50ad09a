// Whether a run stands still: no progress here for a while. Time in which this process itself was stopped does not
// count. The owner brings the time; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace tg::daemon {

class Standstill {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kOwnSleep{500};  // between two ticks: longer means that we were stopped

  // progress: a count that grows whenever anything gets done. How long it has not grown.
  Clock::duration tick(Clock::time_point now, std::uint64_t progress) {
    const bool slept = now - std::exchange(ticked_, now) > kOwnSleep;
    if (std::exchange(progress_, progress) != progress || slept) since_ = now;
    return now - since_;
  }

 private:
  Clock::time_point ticked_{}, since_{};
  std::uint64_t progress_ = 0;
};

}  // namespace tg::daemon

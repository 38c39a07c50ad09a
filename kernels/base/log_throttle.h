// Limits how often a line is written about an event that others can cause as often as they like. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace tg {

class LogThrottle {
 public:
  using Clock = std::chrono::steady_clock;
  // first: when the first line is due.
  explicit LogThrottle(Clock::duration every = std::chrono::minutes(1), Clock::time_point first = {})
      : every_(every), next_(first) {}

  // Counts the event. Returns how many there were since the last line, this one included, if a line is due.
  std::optional<std::uint64_t> happened() {
    const std::lock_guard lock(mutex_);
    ++count_;
    const Clock::time_point now = Clock::now();
    if (now < next_) return std::nullopt;
    next_ = now + every_;
    return std::exchange(count_, 0);
  }

 private:
  std::mutex mutex_;
  const Clock::duration every_;
  Clock::time_point next_;
  std::uint64_t count_ = 0;
};

}  // namespace tg

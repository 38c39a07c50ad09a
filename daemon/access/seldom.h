// At most one line a minute about events that strangers can cause as often as they like. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace tg::daemon {

class Seldom {
 public:
  // The event has happened again. Returns how often since the last line, this time included; nothing if no line is due.
  std::optional<std::uint64_t> happened() {
    ++count_;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return std::nullopt;
    next_ = now + std::chrono::minutes(1);
    return std::exchange(count_, 0);
  }

 private:
  std::chrono::steady_clock::time_point next_{};
  std::uint64_t count_ = 0;
};

}  // namespace tg::daemon

// Passes the node's numbers from the node's thread to the threads that serve them. The node's thread changes numbers()
// and publishes a copy, at most once in kPublishEvery; the other threads read copies and touch nothing else of the
// node.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>

#include "daemon/metrics/numbers.h"

namespace tg::daemon {

class Metrics {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kPublishEvery{250};

  explicit Metrics(std::size_t nodes) : published_{{}, Clock::now()} {
    numbers_.peers.assign(nodes, {});
    published_.numbers = numbers_;
  }

  // --- the node's thread ---
  Numbers& numbers() { return numbers_; }
  bool is_due(Clock::time_point now) const { return now - last_ >= kPublishEvery; }
  void publish(Clock::time_point now) {
    last_ = now;
    Published fresh{numbers_, now};  // copied before the lock, so that readers wait for a swap only
    const std::lock_guard lock(mutex_);
    std::swap(published_, fresh);
  }

  // --- any thread ---
  struct Published {
    Numbers numbers;
    Clock::time_point at;  // the node's thread was alive then
  };
  Published published() const {
    const std::lock_guard lock(mutex_);
    return published_;
  }

 private:
  Numbers numbers_;
  Clock::time_point last_{};
  mutable std::mutex mutex_;
  Published published_;
};

}  // namespace tg::daemon

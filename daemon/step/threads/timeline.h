// What a member did when, in Chrome's trace format (chrome://tracing, Perfetto): a track for each helper of the
// exchange (measure, contribute, reduce, apply), one for the node's thread (wait; without helpers their tasks too),
// one for the compute thread (forward, backward, evaluate; ready, without length: a bucket's gradient is complete).
// Bounded: after kMaxSpans the rest of a run is left out, and the file says so. Any thread; off, a span costs one
// atomic read.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::daemon {

class Timeline {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Track : std::uint8_t { kNode = 1, kCompute = 2, kFirstHelper = 3 };
  static Track helper(std::size_t index) {
    return static_cast<Track>(static_cast<std::size_t>(Track::kFirstHelper) + index);
  }
  static constexpr std::size_t kMaxSpans = 200'000;

  // member: shown as the process; rank makes traces of several members fit into one picture.
  void start(std::string member, std::size_t rank);
  void stop() { enabled_ = false; }
  bool is_enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // name is a literal: it is kept as it is.
  struct Detail {
    std::int64_t bucket = -1;  // none
    std::uint64_t bytes = 0;   // sent meanwhile
  };
  void add(Track track, const char* name, std::uint64_t step, Clock::time_point begin, Clock::time_point end,
           Detail detail = {-1, 0});
  // Wall-clock microseconds, so that the files of several members (with clocks set alike) can be laid side by side.
  Status write(const std::string& path) const;

 private:
  struct Span {
    const char* name;
    std::uint64_t step;
    std::int64_t begin_us, duration_us;
    Track track;
    Detail detail;
  };
  std::atomic<bool> enabled_{false};
  mutable std::mutex mutex_;
  std::string member_;
  std::size_t rank_ = 0;
  Clock::time_point origin_{};
  std::int64_t origin_unix_us_ = 0;
  std::vector<Span> spans_;
  std::uint64_t left_out_ = 0;
};

// Adds its own lifetime as a span.
class TimelineSpan {
 public:
  TimelineSpan(Timeline& timeline, Timeline::Track track, const char* name, std::uint64_t step)
      : timeline_(timeline), track_(track), name_(name), step_(step) {
    if (timeline_.is_enabled()) begin_ = Timeline::Clock::now();
  }
  ~TimelineSpan() {
    if (timeline_.is_enabled()) timeline_.add(track_, name_, step_, begin_, Timeline::Clock::now());
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

 private:
  Timeline& timeline_;
  const Timeline::Track track_;
  const char* const name_;
  const std::uint64_t step_;
  Timeline::Clock::time_point begin_{};
};

}  // namespace tg::daemon

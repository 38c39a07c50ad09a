// Measures one link in one direction for some seconds: sends frames to one peer, each acknowledged
// (schema::ProbeReply), with just enough in flight to keep the link full. The rate is the payload acknowledged after
// the first answer, over the time from that one to the last. Pure: the owner sends the frames and brings the time; one
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tg::daemon {

class LinkStream {
 public:
  static constexpr std::size_t kFrameBytes = 64 * 1024;              // takes 0.5 ms at 1 Gbit/s, 0.5 s at 1 Mbit/s
  static constexpr std::uint64_t kMinFrames = 2, kMaxFrames = 64;    // on their way
  static constexpr double kShortSeconds = 0.02, kLongSeconds = 0.1;  // a frame and its answer: more fit, fewer would do

  struct Frames {  // to be sent now
    std::uint32_t first = 0, count = 0;
  };

  Frames begin(double now_seconds, double seconds) {
    began_ = now_seconds;
    ends_ = now_seconds + seconds;
    return fill(now_seconds);
  }
  // This frame has been acknowledged; returns the frames to send next.
  Frames acknowledged(std::uint32_t number, double now_seconds) {
    const auto sent = in_flight_.find(number);
    if (sent == in_flight_.end()) return {};
    const double took = now_seconds - sent->second;
    in_flight_.erase(sent);
    if (acknowledged_++ == 0) first_at_ = now_seconds;
    last_at_ = now_seconds;
    if (took < kShortSeconds) window_ = std::min(window_ + 1, kMaxFrames);
    if (took > kLongSeconds) window_ = std::max(window_ - 1, kMinFrames);
    return fill(now_seconds);
  }
  // The payload's rate; 0 if nothing came back, and of a single answer the time that its frame took.
  double mbps() const {
    if (acknowledged_ == 0) return 0;
    const bool single = acknowledged_ == 1;
    const double seconds = last_at_ - (single ? began_ : first_at_);
    return static_cast<double>(single ? 1 : acknowledged_ - 1) * kFrameBytes * 8e-6 / std::max(seconds, 1e-6);
  }

 private:
  Frames fill(double now_seconds) {
    Frames frames{next_, 0};
    for (; now_seconds < ends_ && in_flight_.size() < window_; ++frames.count) in_flight_[next_++] = now_seconds;
    return frames;
  }

  double began_ = 0, ends_ = 0, first_at_ = 0, last_at_ = 0;
  std::uint32_t next_ = 1;
  std::uint64_t window_ = kMinFrames, acknowledged_ = 0;
  std::map<std::uint32_t, double> in_flight_;  // when each was sent
};

}  // namespace tg::daemon

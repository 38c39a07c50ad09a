// Measures one link in one direction for some seconds: sends frames to one peer, each acknowledged
// (schema::ProbeReply), with just enough under way to keep the link full. The rate is the payload acknowledged after
// the first answer, over the time from that one to the last. Pure: the owner sends the frames and brings the time; one
// thread.
#pragma once

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

  Frames begin(double now_seconds, double seconds);
  // An acknowledgement of this frame came; returns the frames to send next.
  Frames acknowledged(std::uint32_t number, double now_seconds);
  // The payload's rate; 0 if nothing came back.
  double mbps() const;

 private:
  Frames fill(double now_seconds);

  double began_ = 0, ends_ = 0, first_at_ = 0, last_at_ = 0;
  std::uint32_t next_ = 1;
  std::uint64_t window_ = kMinFrames, acknowledged_ = 0;
  std::map<std::uint32_t, double> under_way_;  // when each was sent
};

}  // namespace tg::daemon

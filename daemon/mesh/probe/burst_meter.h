// The receiver's half of measuring a link (link_probe.h is the sender's half): times a burst of probe frames from its
// first frame to its last. The sender cannot time this: its clock would run until the reply arrives, and the reply may
// wait behind a burst of the receiver's own, on another link. Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "schema/place.h"

namespace tg::daemon {

class BurstMeter {
 public:
  explicit BurstMeter(std::size_t nodes) : bursts_(nodes) {}

  struct Frame {
    std::uint64_t run = 0;  // key of the run or measurement
    std::uint32_t burst = 0;
    bool last = false;
  };
  // A frame of this peer arrived at `micros` of a steady clock. For the last frame, returns the microseconds since the
  // first one.
  std::optional<std::uint64_t> on_frame(Seat from, const Frame& frame, std::uint64_t micros);

 private:
  struct Burst {  // a peer's latest
    std::uint64_t run = 0;
    std::uint32_t number = 0;
    std::uint64_t began = 0;  // microseconds
    bool open = false;
  };
  Per<Seat, Burst> bursts_;
};

}  // namespace tg::daemon

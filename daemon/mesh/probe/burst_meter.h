// The receiver's half of measuring a link (link_probe.h is the sender's): how long a burst of probe frames took to come
// in, between its first and its last frame. The sender cannot time this: its clock would run until the answer comes,
// and the answer may wait behind a burst of the receiver's own, on another link. Pure; one thread.
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
    std::uint64_t run = 0;  // key of the run or measurement that it belongs to
    std::uint32_t burst = 0;
    bool last = false;
  };
  // A frame of this peer arrived at `micros` of a steady clock. With the last one: the microseconds since the first.
  std::optional<std::uint64_t> arrived(Seat from, const Frame& frame, std::uint64_t micros);

 private:
  struct Burst {  // the latest of a peer
    std::uint64_t run = 0;
    std::uint32_t number = 0;
    std::uint64_t began = 0;  // microseconds
    bool open = false;
  };
  Per<Seat, Burst> bursts_;
};

}  // namespace tg::daemon

#include "daemon/mesh/probe/burst_meter.h"

namespace tg::daemon {

std::optional<std::uint64_t> BurstMeter::arrived(std::size_t rank, const Frame& frame, std::uint64_t micros) {
  if (rank >= bursts_.size()) return std::nullopt;
  Burst& burst = bursts_[rank];
  if (!burst.open || burst.run != frame.run || burst.number != frame.burst)
    burst = {frame.run, frame.burst, micros, true};
  if (!frame.last) return std::nullopt;
  burst.open = false;
  return micros > burst.began ? micros - burst.began : 0;
}

}  // namespace tg::daemon

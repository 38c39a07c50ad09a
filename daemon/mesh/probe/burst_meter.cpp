#include "daemon/mesh/probe/burst_meter.h"

namespace tg::daemon {

std::optional<std::uint64_t> BurstMeter::on_frame(Seat from, const Frame& frame, std::uint64_t micros) {
  if (from.index() >= bursts_.size()) return std::nullopt;
  Burst& burst = bursts_[from];
  if (!burst.open || burst.run != frame.run || burst.number != frame.burst)
    burst = {frame.run, frame.burst, micros, true};
  if (!frame.last) return std::nullopt;
  burst.open = false;
  return micros > burst.began ? micros - burst.began : 0;
}

}  // namespace tg::daemon

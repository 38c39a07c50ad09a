#include "daemon/membership/split_by_speed.h"

#include <algorithm>
#include <cmath>

#include "schema/limits.h"

namespace tg::daemon {

Per<Seat, std::uint16_t> weights_by_speed(const schema::JobSpec& job, const Per<Seat, schema::Vote>& votes) {
  Per<Seat, std::uint16_t> weights(votes.size(), 1);
  if (job.compute == schema::Compute::kReplay) return weights;
  Per<Seat, double> seconds;  // a sample's
  for (const schema::Vote& vote : votes) {
    if (vote.local_batch == 0) return weights;
    seconds.push_back(vote.step_seconds / vote.local_batch);
    if (!(seconds.back() > 0)) return weights;
  }
  const double least = *std::ranges::min_element(seconds);
  for (const Seat seat : votes.places())
    weights[seat] = static_cast<std::uint16_t>(std::max(1.0, std::round(least / seconds[seat] * schema::kMaxWeight)));
  return weights;
}

}  // namespace tg::daemon

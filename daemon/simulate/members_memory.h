// What the members of a simulated view take of this machine, beside what preparing the first of them has taken.
#pragma once

#include <functional>
#include <string>

#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"
#include "kernels/base/status.h"
#include "schema/frame/frame.h"
#include "schema/options/job.h"
#include "schema/place.h"

namespace tg::daemon {

struct MembersToBe {
  const schema::JobSpec& job;
  const Prepared& prepared;
  const PreparedView& first;  // the prepared member's
  const Per<Rank, std::uint16_t>& weights;
  std::uint64_t global_batch = 0;
  const schema::Commit& choice;
  bool all_replicas = true;                              // each keeps a state
  std::uint64_t lanes = 1;                               // members that learn at once
  const char* advice = "recompute on a larger machine";  // where it does not fit
};
// Says how much it is, and refuses what does not fit.
Status check_memory_of_members(const MembersToBe& to_be, const engine::ComputeDevice& compute,
                               const std::function<void(const std::string&)>& say);

}  // namespace tg::daemon

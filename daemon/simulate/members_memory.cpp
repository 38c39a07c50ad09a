#include "daemon/simulate/members_memory.h"

#include "daemon/simulate/simulated_view.h"
#include "daemon/step/job_layout.h"
#include "engine/resources/memory.h"

namespace tg::daemon {
namespace {

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

}  // namespace

Status check_memory_of_members(const MembersToBe& to_be, const engine::ComputeDevice& compute,
                               const std::function<void(const std::string&)>& say) {
  const engine::Model& model = to_be.prepared.model;
  const std::size_t members = to_be.members;
  const std::uint64_t state =
      (to_be.all_replicas ? Replica::bytes(model, to_be.prepared.replica->slot_count(), keeps_average(to_be.job)) : 0) +
      model.segments.padded_count() * sizeof(float);
  const std::uint64_t exchange = SimulatedView::bytes_of_member(to_be.job, model, members, to_be.choice);
  const bool on_device = compute.accelerator() != nullptr;
  const std::uint64_t needed = members * exchange + to_be.more_engine_bytes + (on_device ? 0 : (members - 1) * state);
  const std::uint64_t left = engine::available_memory();
  const std::string all = std::to_string(members) + (members == 1 ? " member" : " members");
  say("memory: " + mebibytes(needed) + " more for " + all + (to_be.all_replicas ? ", each with its state; " : "; ") +
      mebibytes(left) + " are left");
  if (needed > left)
    return Error{ErrorKind::kRefused,
                 "it takes " + mebibytes(needed) + " more for " + all + ", and " + mebibytes(left) +
                     " of this machine's memory are left; stop what else runs here, or use a larger machine"};
  const std::uint64_t free = compute.memory().free;
  if (on_device && (members - 1) * state > free)
    return Error{ErrorKind::kRefused, "it takes " + mebibytes((members - 1) * state) + " more on " + compute.name() +
                                          " for " + all + ", and " + mebibytes(free) + " are free there"};
  return {};
}

}  // namespace tg::daemon

#include "daemon/simulate/members_memory.h"

#include <algorithm>
#include <map>

#include "daemon/run/rebuild.h"
#include "daemon/simulate/simulated_view.h"
#include "daemon/step/job_layout.h"
#include "engine/dataset.h"
#include "engine/resources/memory.h"
#include "kernels/base/aligned_array.h"

namespace tg::daemon {
namespace {

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1u << 20) - 1) >> 20) + " MiB"; }

// Memory of the engines beyond the first: members with equal shares have one in each lane (share_engines.h).
std::uint64_t more_engine_bytes(const MembersToBe& to_be) {
  std::map<int, std::uint64_t> alike;
  for (const engine::Share& share : engine::split(to_be.global_batch, to_be.weights)) ++alike[share.count];
  const std::uint64_t first = to_be.first.local_batch;
  std::uint64_t samples = 0;  // all engines' together
  for (const auto& [count, members] : alike)
    samples += std::min(to_be.lanes, members) * static_cast<std::uint64_t>(count);
  return (std::max(samples, first) - first) * to_be.first.activation_bytes / first;
}

// The one that a member learns from, the one that is being filled, and the order of the samples.
std::uint64_t batch_bytes(const MembersToBe& to_be) {
  const std::uint64_t sample = to_be.prepared.model.input.elements() * sizeof(float);
  return 2 * to_be.global_batch * sample +
         to_be.weights.size() * to_be.prepared.data->train.count() * sizeof(std::uint32_t);
}

}  // namespace

Status check_memory_of_members(const MembersToBe& to_be, const engine::ComputeDevice& compute,
                               const std::function<void(const std::string&)>& say) {
  const engine::Model& model = to_be.prepared.model;
  const std::size_t members = to_be.weights.size();
  const std::uint64_t state =
      (to_be.all_replicas ? Replica::bytes(model, to_be.prepared.replica->slot_count(), keeps_average(to_be.job)) : 0) +
      whole_bytes(model.segments.padded_count() * sizeof(float));
  const std::uint64_t exchange = SimulatedView::bytes_of_member(to_be.job, model, members, to_be.choice);
  const bool on_device = compute.accelerator() != nullptr;
  const std::uint64_t samples = replays(to_be.job) ? 0 : batch_bytes(to_be);
  const std::uint64_t space = more_engine_bytes(to_be) + (members - 1) * state;  // where it computes
  const std::uint64_t needed = members * exchange + samples + (on_device ? 0 : space);
  const std::uint64_t left = engine::available_memory();
  const std::string all = std::to_string(members) + (members == 1 ? " member" : " members");
  say("memory: " + mebibytes(needed) + " more for " + all + (to_be.all_replicas ? ", each with its state; " : "; ") +
      mebibytes(left) + " are left");
  if (needed > left)
    return Error{ErrorKind::kRefused,
                 "it takes " + mebibytes(needed) + " more for " + all + ", and " + mebibytes(left) +
                     " of this machine's memory are left; stop what else runs here, or " + to_be.advice};
  const std::uint64_t free = compute.memory().free;
  if (on_device && space > free)
    return Error{ErrorKind::kRefused, "it takes " + mebibytes(space) + " more on " + compute.name() + " for " + all +
                                          ", and " + mebibytes(free) +
                                          " are free there; stop what else computes there, or " + to_be.advice};
  return {};
}

}  // namespace tg::daemon

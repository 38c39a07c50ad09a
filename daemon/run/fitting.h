// Fits a run to a view on this node: an engine for this member's share of a batch, its samples, and how long a step
// takes with it. On the compute thread: as a part of preparing (preparation.h), and again with each view after that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "daemon/run/preparation_options.h"
#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"
#include "engine/model.h"
#include "kernels/base/status.h"
#include "schema/step.h"

namespace tg::daemon {

inline bool replays(const schema::JobSpec& job) { return job.compute == schema::Compute::kReplay; }
inline Error on_node(const PreparationOptions& options, const Error& error) {
  return {error.kind, options.node + ": " + error.message};
}

// Every member has a sample.
Status check_shares(const ViewPart& part);
// Before anything is allocated.
Status check_whole_run(const PreparationOptions& options, const Prepared& prepared, const ViewPart& part,
                       const engine::ComputeDevice& compute);
// A member's samples, of the steps from `first` to `steps`; nothing where gradients are replayed.
std::unique_ptr<engine::BatchSource> batches_of(const PreparationOptions& options, const ViewPart& part,
                                                const Prepared& prepared, Step first, std::uint64_t steps,
                                                kernels::MemorySpace& space);
// What lasts for a view, beside what lasts for the run. host_bytes: that all of it may take of the host's memory. Times
// a step. Throws what allocations, kernels and advance() throw.
Result<TrainingKit> prepare_view(const PreparationOptions& options, const ViewPart& part,
                                 std::shared_ptr<const Prepared> prepared, std::uint64_t host_bytes,
                                 const engine::ComputeDevice& compute, const std::function<void()>& advance);

// On the same thread, later: what the kit lacks for another part of the batch, from this step on. Nothing is timed. An
// engine for as many samples as before stays; where they are more, the old one makes room first. After an error the kit
// may have no engine. advance(), and what is thrown: as of
// prepare().
Status refit(const PreparationOptions& options, TrainingKit& kit, const ViewPart& part, Step first,
             const engine::ComputeDevice& compute, const std::function<void()>& advance);

}  // namespace tg::daemon

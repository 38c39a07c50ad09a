// Fits a run to a view on this node: makes an engine for this member's share of a batch, selects its samples, and times
// a step. Runs on the compute thread, as part of preparing (prepare.h) and again for each later view.
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

// Checks that every member has a sample.
Status check_shares(const LocalShare& part);
// Whether the model trains on every share that a member may have, in this view and in all that deaths leave of it.
Status check_later_shares(const LocalShare& part, const engine::Model& model);
// Checks the memory before anything is allocated.
Status check_whole_run(const PreparationOptions& options, const Prepared& prepared, const LocalShare& part,
                       const engine::ComputeDevice& compute);
// Returns a member's samples for the steps from `first` to `steps`; null if gradients are replayed.
std::unique_ptr<engine::BatchSource> batches_of(const PreparationOptions& options, const LocalShare& part,
                                                const Prepared& prepared, Step first, std::uint64_t steps,
                                                kernels::MemorySpace& space);
// Makes the parts of the kit that last for a view, and times a step. host_bytes: the limit of host memory for the whole
// run. Throws what allocations, kernels and advance() throw.
Result<TrainingKit> prepare_view(const PreparationOptions& options, const LocalShare& part,
                                 std::shared_ptr<const Prepared> prepared, std::uint64_t host_bytes,
                                 const engine::ComputeDevice& compute, const std::function<void()>& advance);

// Fits the kit to another part of the batch, from this step on, on the same thread. Nothing is timed. An engine for the
// same number of samples is kept; otherwise the old one is destroyed first. After an error the kit may have no engine.
// advance() and exceptions: see prepare().
Status rebuild(const PreparationOptions& options, TrainingKit& kit, const LocalShare& part, Step first,
               const engine::ComputeDevice& compute, const std::function<void()>& advance);

}  // namespace tg::daemon

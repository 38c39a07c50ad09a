// Prepares a run on this node: once the data, the model, the first state and the hashes that members compare; for a
// view the engine for this member's share, and the time of a step. Checks that everything fits into memory before
// anything is allocated. The parts that belong to a view are made again for each one: rebuild.h.
#pragma once

#include <functional>

#include "daemon/run/preparation_options.h"
#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"

namespace tg::daemon {

// Runs on the thread that will train with the kit; takes seconds. compute outlives the kit. advance() is called with
// each progress; it may throw something that is no std::exception to cancel, and nothing else is thrown. An error names
// the node that caused it.
Result<TrainingKit> prepare(const PreparationOptions& options, const LocalShare& part,
                            const engine::ComputeDevice& compute, const std::function<void()>& advance);

// Prepares the data, the model for them, the recipe and their description, without state and hashes. Throws what
// advance() throws, and std::exception.
Status prepare_training(const PreparationOptions& options, Prepared& prepared, const std::function<void()>& advance);

}  // namespace tg::daemon

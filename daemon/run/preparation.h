// Prepares a run on this node: once the data, the model, the state that it begins with and the hashes that members
// compare; for a view the engine for this member's share, and how long a step takes here. Whether everything fits into
// memory is checked before anything is allocated. What is a view's is done again with each: fitting.h.
#pragma once

#include <functional>

#include "daemon/run/preparation_options.h"
#include "daemon/step/threads/trainer.h"
#include "engine/compute_device.h"

namespace tg::daemon {

// On the thread that will train with what comes of it; takes seconds. compute outlives the kit. advance() is
// called whenever something got done, and may throw something that is no std::exception to end it; nothing else is
// thrown. Errors name the node where it is to blame.
Result<TrainingKit> prepare(const PreparationOptions& options, const ViewPart& part,
                            const engine::ComputeDevice& compute, const std::function<void()>& advance);

// Of the run's state and hashes nothing: the data, the model for them, the recipe, and their description. advance(): as
// above; throws what it throws, and std::exception.
Status prepare_training(const PreparationOptions& options, Prepared& prepared, const std::function<void()>& advance);

}  // namespace tg::daemon

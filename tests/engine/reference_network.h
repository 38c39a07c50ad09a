// The dumb model of the engine: every layer as its textbook loops, in double, one sample at a time. Its loss is what
// the engine's loss must be, and its finite differences are what the engine's gradient must be.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "engine/model.h"

namespace tg::engine {

// Sum over the batch of the cross-entropy losses; parameters: a flat array in double.
double reference_loss(const Model& model, const std::vector<double>& parameters, const Batch& batch);

}  // namespace tg::engine

// The dumb model of the engine: every operator as its textbook loops, in double, all samples of a batch at a time. Its
// loss is what the engine's loss must be, and its finite differences are what the engine's gradient must be.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "engine/model.h"

namespace tg::engine {

// Sum over the batch of the losses of all heads, in training; parameters: a flat array in double. seed: of dropout.
double reference_loss(const Model& model, const std::vector<double>& parameters, const Batch& batch,
                      std::uint64_t seed = 0);

}  // namespace tg::engine

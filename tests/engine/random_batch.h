// Random batches and parameters for the engine's tests: from a seed, the same on every run.
#pragma once

#include <cstdint>

#include "engine/engine.h"
#include "engine/model.h"
#include "kernels/base/aligned_array.h"

namespace tg::engine {

// Images uniform in [-1, 1], labels uniform.
Batch random_batch(const Model& model, int count, std::uint64_t seed);

// Every real element uniform in [-bound, bound], biases too; padding 0.
AlignedArray<float> random_parameters(const Model& model, float bound, std::uint64_t seed);

// Room for one gradient.
inline AlignedArray<float> flat_array(const Model& model) { return AlignedArray<float>(model.segments.padded_count()); }

}  // namespace tg::engine

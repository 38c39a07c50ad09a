// Fills one sample of a batch, for fill_training_batch and for the threads of a BatchSource.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/data/recipe/make_input.h"
#include "engine/dataset.h"

namespace tg::engine {

// Makes room for batch.count samples, in memory of that space if one is given.
void shape_batch(const Recipe& recipe, Batch& batch, kernels::MemorySpace* space = nullptr);

// Fills sample `i` of the batch: the one at the stream's `position`, which is `image` of the training set. Any thread,
// each with its own scratch and i. Throws as fill_training_batch.
void fill_training_sample(const Dataset& data, const Recipe& recipe, std::uint64_t seed, std::uint64_t position,
                          std::size_t image, Scratch& scratch, Batch& batch, std::size_t i);

}  // namespace tg::engine

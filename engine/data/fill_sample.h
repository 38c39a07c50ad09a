// One sample of a batch: what fill_training_batch and the threads of a BatchSource have in common.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/data/recipe/make_input.h"
#include "engine/dataset.h"

namespace tg::engine {

// Makes room for batch.count samples, of the home where one is given.
void shape_batch(const Recipe& recipe, Batch& batch, kernels::Home* home = nullptr);

// Sample `i` of the batch: that of the stream's `position`, which is `image` of the training set. Any thread, each with
// its own scratch and i. Throws as fill_training_batch.
void fill_training_sample(const Dataset& data, const Recipe& recipe, std::uint64_t seed, std::uint64_t position,
                          std::size_t image, Scratch& scratch, Batch& batch, std::size_t i);

}  // namespace tg::engine

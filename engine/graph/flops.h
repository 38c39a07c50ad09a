// Counts a model's arithmetic: multiply-adds of its convolutions and dense layers, by the weight's segment. Pure.
#pragma once

#include <vector>

#include "engine/model.h"

namespace tg::engine {

// Multiply-adds of one sample's forward pass, auxiliary heads included, by segment; 0 for segments that are not
// weights.
std::vector<double> multiply_adds(const Model& model);

// Operations of forward and backward of one sample: backward multiplies twice, for the input and for the weight, and a
// multiply-add is two operations.
double training_operations(const Model& model);

}  // namespace tg::engine

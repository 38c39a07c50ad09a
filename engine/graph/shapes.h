// The shapes of a graph's values, and checks of the graph: pure functions. Errors are kInvalidJob and name the operator
// and the shapes.
#pragma once

#include <span>

#include "engine/model.h"
#include "kernels/base/status.h"

namespace tg::engine {

// A shape as text: "3x224x224".
std::string text_of(const ImageShape& shape);

// The shape that the operator makes from inputs of these shapes.
Result<ImageShape> infer_shape(const Operator& one, std::span<const ImageShape> inputs);

// The shapes of all values, in order. Checks that every value but a head's is used, every operator leads to a head,
// exactly one head counts in evaluation, no two layers with segments have the same name, and segments and statistics
// have the shapes and the order that the operators need.
Result<std::vector<ImageShape>> infer_shapes(const Model& model);

// The segments that an operator computes the gradients of, ascending.
std::vector<std::size_t> segments_of(const Operator& one);

}  // namespace tg::engine

// Softmax cross-entropy over rows of logits: losses and their gradient, summed over the rows. Plain functions on the
// caller's memory; any thread. rows x classes values, row-major; labels below `classes`.
#pragma once

#include <cstdint>
#include <span>

#include "engine/engine.h"

namespace tg::engine::cpu {

// Cross-entropy summed over labels.size() rows, natural logarithm; `correct` counts rows whose label has the highest
// logit, `correct_5` those where it is among the five highest (among equals the first classes count as higher).
// probabilities: softmax of each row, or empty if not wanted.
EvaluationCounts cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                               std::span<double> probabilities);

// Cross-entropy against targets with the share `smoothing` spread evenly over all classes, summed as above.
double smoothed_cross_entropy(std::span<const double> probabilities, std::span<const std::int32_t> labels,
                              double smoothing);

// gradient = factor * (softmax - target), target = (1 - smoothing) * one-hot + smoothing / classes.
void cross_entropy_gradient(std::span<const double> probabilities, std::span<const std::int32_t> labels, double factor,
                            double smoothing, std::span<float> gradient);

}  // namespace tg::engine::cpu

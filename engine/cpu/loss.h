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

// What training makes of it: targets with the share `smoothing` spread evenly over all classes, and a weight for each
// row by its label's class; none: 1 each.
struct Targets {
  double smoothing = 0;
  std::span<const double> class_weights = {};
  bool plain() const { return smoothing == 0 && class_weights.empty(); }
  double weight_of(std::int32_t label) const {
    return class_weights.empty() ? 1 : class_weights[static_cast<std::size_t>(label)];
  }
};

// Cross-entropy against these targets, summed as above.
double cross_entropy_against(const Targets& targets, std::span<const double> probabilities,
                             std::span<const std::int32_t> labels);

// gradient = factor * weight * (softmax - target), target = (1 - smoothing) * one-hot + smoothing / classes.
void cross_entropy_gradient(const Targets& targets, std::span<const double> probabilities,
                            std::span<const std::int32_t> labels, double factor, std::span<float> gradient);

}  // namespace tg::engine::cpu

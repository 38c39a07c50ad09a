#include "engine/cpu/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

// The number of classes ranked before the label's; all of them if its logit is NaN.
std::size_t rank_of(std::span<const float> logits, std::size_t label) {
  std::size_t higher = 0;
  for (std::size_t c = 0; c < logits.size(); ++c)
    if (c != label && !(logits[c] < logits[label] || (logits[c] == logits[label] && c > label))) ++higher;
  return higher;
}

}  // namespace

EvaluationCounts cross_entropy(std::span<const float> logits, std::span<const std::int32_t> labels,
                               std::span<double> probabilities) {
  EvaluationCounts counts;
  counts.total = labels.size();
  if (labels.empty()) return counts;
  const std::size_t classes = logits.size() / labels.size();
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const std::span<const float> x = logits.subspan(row * classes, classes);
    const auto label = static_cast<std::size_t>(labels[row]);
    TG_CHECK(label < classes, label, classes);
    const auto highest = std::max_element(x.begin(), x.end());
    // In double, relative to the highest logit: no overflow, and the sum is at least 1.
    double sum = 0;
    for (const float each : x) sum += std::exp(static_cast<double>(each) - *highest);
    counts.loss_sum += std::log(sum) - (static_cast<double>(x[label]) - *highest);
    if (static_cast<std::size_t>(highest - x.begin()) == label) ++counts.correct;
    if (rank_of(x, label) < 5) ++counts.correct_5;
    if (probabilities.empty()) continue;
    for (std::size_t c = 0; c < classes; ++c) {
      probabilities[row * classes + c] = std::exp(static_cast<double>(x[c]) - *highest) / sum;
    }
  }
  return counts;
}

double cross_entropy_against(const Targets& targets, std::span<const double> probabilities,
                             std::span<const std::int32_t> labels) {
  const std::size_t classes = labels.empty() ? 0 : probabilities.size() / labels.size();
  double sum = 0;
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const std::span<const double> p = probabilities.subspan(row * classes, classes);
    double all = 0;
    for (const double each : p) all -= std::log(std::max(each, std::numeric_limits<double>::min()));
    const double label =
        -std::log(std::max(p[static_cast<std::size_t>(labels[row])], std::numeric_limits<double>::min()));
    sum += targets.weight_of(labels[row]) *
           ((1 - targets.smoothing) * label + targets.smoothing / static_cast<double>(classes) * all);
  }
  return sum;
}

void cross_entropy_gradient(const Targets& targets, std::span<const double> probabilities,
                            std::span<const std::int32_t> labels, double factor, std::span<float> gradient) {
  const std::size_t classes = labels.empty() ? 0 : probabilities.size() / labels.size();
  const double everywhere = targets.smoothing / static_cast<double>(std::max<std::size_t>(classes, 1));
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const double scale = factor * targets.weight_of(labels[row]);
    for (std::size_t c = 0; c < classes; ++c) {
      const double target = (c == static_cast<std::size_t>(labels[row]) ? 1.0 - targets.smoothing : 0.0) + everywhere;
      gradient[row * classes + c] = static_cast<float>(scale * (probabilities[row * classes + c] - target));
    }
  }
}

}  // namespace tg::engine::cpu

// The loss on the device's grid against the CPU engine's: sums to some roundings of double, counts exactly.
#include "engine/cuda/operators/bodies/loss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "engine/cpu/loss.h"
#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {
namespace {

constexpr double kLossTolerance = 1e-12;  // for sums of up to 1000 exponentials, each to 2^-53

struct Losses {
  LossResult sums;
  std::vector<double> probabilities;
  Values gradient;
};

Losses run_on_grid(const LossShape& shape, const Values& logits, const std::vector<std::int32_t>& labels, float factor,
                   double weight) {
  Losses result{{}, std::vector<double>(logits.size()), Values(logits.size(), -1)};
  std::vector<bodies::RowLoss> rows(static_cast<std::size_t>(shape.counted));
  run_steps(bodies::RowLosses(shape, logits.data(), labels.data(), result.probabilities.data(), rows.data()));
  run_steps(bodies::SumRows(shape, rows.data(), &result.sums));
  run(bodies::LossGradient(shape, result.probabilities.data(), labels.data(), &factor, weight, result.gradient.data()));

  LossResult alone;  // without probabilities
  run_steps(bodies::RowLosses(shape, logits.data(), labels.data(), nullptr, rows.data()));
  run_steps(bodies::SumRows(shape, rows.data(), &alone));
  EXPECT_EQ(alone.correct, result.sums.correct);
  EXPECT_EQ(alone.correct_5, result.sums.correct_5);
  if (alone.plain == alone.plain) {
    EXPECT_EQ(alone.plain, result.sums.plain);
    EXPECT_EQ(alone.trained, result.sums.trained);
  }
  return result;
}

// What is not a finite number is the same kind of it.
void expect_near(double value, double expected) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(value)) << value;
  } else if (std::isinf(expected)) {
    ASSERT_EQ(value, expected);
  } else {
    ASSERT_NEAR(value, expected, kLossTolerance * (1 + std::abs(expected)));
  }
}

void compare(const LossShape& shape, const Values& logits, const std::vector<std::int32_t>& labels) {
  constexpr float kFactor = 0.37F;
  constexpr double kWeight = 0.3;
  const Losses result = run_on_grid(shape, logits, labels, kFactor, kWeight);
  const auto counted = static_cast<std::size_t>(shape.counted), classes = static_cast<std::size_t>(shape.classes);
  const std::span<const float> used(logits.data(), counted * classes);
  const std::span<const std::int32_t> known(labels.data(), counted);
  std::vector<double> probabilities(used.size());
  const EvaluationCounts counts = cpu::cross_entropy(used, known, probabilities);
  EXPECT_EQ(result.sums.correct, counts.correct);
  EXPECT_EQ(result.sums.correct_5, counts.correct_5);
  expect_near(result.sums.plain, counts.loss_sum);
  const cpu::Targets targets{shape.smoothing, shape.class_weights == nullptr ? std::span<const double>()
                                                                             : std::span(shape.class_weights, classes)};
  expect_near(result.sums.trained,
              targets.plain() ? counts.loss_sum : cpu::cross_entropy_against(targets, probabilities, known));
  for (std::size_t i = 0; i < used.size(); ++i) expect_near(result.probabilities[i], probabilities[i]);

  Values gradient(used.size());
  cpu::cross_entropy_gradient(targets, std::span(result.probabilities).first(used.size()), known, kFactor * kWeight,
                              gradient);
  for (std::size_t i = 0; i < used.size(); ++i)
    if (gradient[i] == gradient[i]) {
      ASSERT_EQ(result.gradient[i], gradient[i]) << i;
    }
  for (std::size_t i = used.size(); i < logits.size(); ++i) ASSERT_EQ(result.gradient[i], 0) << i;
}

std::vector<std::int32_t> labels_of(std::size_t rows, int classes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> labels(rows);
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(classes));
  return labels;
}

TEST(LossOnDevice, EqualsTheCpu) {
  for (const int classes : {1, 2, 5, 10, 31, 33, 100, 129, 1000})
    for (const int rows : {1, 3, 8, 64, 257, 600})
      for (const double smoothing : {0.0, 0.1}) {
        if (classes * rows > 100'000) continue;
        const LossShape shape{rows, classes, rows == 64 ? 50 : rows, smoothing};
        const auto count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(classes);
        Values logits = random_values(count, 11);
        for (float& each : logits) each *= 10;
        const auto labels = labels_of(static_cast<std::size_t>(shape.counted), classes, 12);
        compare(shape, logits, labels);
        compare(shape, coarse_values(count, 13), labels);  // many are equal
        compare(shape, Values(count, 3.0F), labels);
        for (float& each : logits) each *= 100;  // probabilities of 0
        compare(shape, logits, labels);
      }
}

TEST(LossOnDevice, WeighsClassesAsTheCpu) {
  constexpr int kRows = 300, kClasses = 7;
  const double weights[kClasses] = {1, 0.3, 2.5, 1e-6, 7, 1.0 / 3, 0};
  for (const double smoothing : {0.0, 0.1})
    compare({kRows, kClasses, 250, smoothing, weights}, random_values(std::size_t{kRows} * kClasses, 21),
            labels_of(250, kClasses, 22));
}

TEST(LossOnDevice, CountsOddLogitsAsTheCpu) {
  constexpr float kChoice[] = {kNan, kInfinity, -kInfinity, 0, -0.0F, 1, 1, 2};
  for (const int classes : {1, 3, 6, 40})
    for (const double smoothing : {0.0, 0.1}) {
      constexpr int kRows = 400;
      Values logits(static_cast<std::size_t>(kRows * classes));
      std::mt19937_64 random(14);
      for (float& each : logits) each = kChoice[random() % std::size(kChoice)];
      const auto labels = labels_of(kRows, classes, 15);
      for (int row = 0; row < kRows; ++row)  // each on its own: one that is no number would hide the others
        compare({1, classes, 1, smoothing},
                Values(logits.begin() + row * classes, logits.begin() + (row + 1) * classes),
                {labels[static_cast<std::size_t>(row)]});
      compare({kRows, classes, kRows, smoothing}, logits, labels);
    }
}

}  // namespace
}  // namespace tg::engine::cuda

// Batch normalization's statistics: what a step measures, how the running ones follow, and that evaluation takes them.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.h"
#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {
namespace {

constexpr int kStatisticsBatch = 5;

// The normalization sees the images themselves, so that its statistics are theirs.
Model of_images(bool gamma) {
  return ModelBuilder("m", {3, 6, 4})
      .batch_normalization("bn1", {.epsilon = 1e-3F, .momentum = 0.25F, .gamma = gamma})
      .relu()
      .dense("fc", 4, {})
      .build()
      .value();
}

struct Moments {
  double mean = 0, variance = 0;  // n - 1 below
};

Moments moments_of(const Batch& batch, const ImageShape& shape, int channel) {
  const std::size_t pixels = static_cast<std::size_t>(shape.height) * shape.width;
  std::vector<double> values;
  for (int n = 0; n < batch.count; ++n)
    for (std::size_t p = 0; p < pixels; ++p)
      values.push_back(batch.images[(static_cast<std::size_t>(n) * shape.channels + channel) * pixels + p]);
  Moments moments;
  for (const double each : values) moments.mean += each / static_cast<double>(values.size());
  for (const double each : values)
    moments.variance += (each - moments.mean) * (each - moments.mean) / static_cast<double>(values.size() - 1);
  return moments;
}

TEST(Statistics, AStepsEqualItsBatchs) {
  constexpr double kTolerance = 1e-6;  // float32 sums of 120 values below 1
  const Model model = of_images(true);
  auto engine = make_cpu_engine(model, {.threads = 2, .batch = kStatisticsBatch, .evaluation_batch = 2}).value();
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 1);
  AlignedArray<float> measured(model.statistics.padded_count());
  for (float& each : measured) each = 77;
  for (const std::uint64_t seed : {2, 3}) {
    const Batch batch = random_batch(model, kStatisticsBatch, seed);
    engine->forward(parameters.data(), batch);
    engine->read_statistics(measured.data());
    for (int c = 0; c < 3; ++c) {
      const Moments expected = moments_of(batch, model.input, c);
      EXPECT_NEAR(measured[model.statistics[0].offset + c], expected.mean, kTolerance) << c;
      EXPECT_NEAR(measured[model.statistics[1].offset + c], expected.variance, kTolerance) << c;
    }
  }
  EXPECT_EQ(measured[3], 77) << "padding is left as it is";
}

TEST(Statistics, RunningOnesFollowAtTheirMomentum) {
  const Model model = of_images(true);
  const std::size_t count = model.statistics.padded_count();
  AlignedArray<float> running(count), measured(count);
  initialize(model.statistics, 1, running.data());
  EXPECT_EQ(running[model.statistics[0].offset], 0);
  EXPECT_EQ(running[model.statistics[1].offset], 1);
  EXPECT_EQ(running[3], 0);
  for (float& each : measured) each = 5;
  follow_statistics(model, measured.span(), running.span());
  EXPECT_EQ(running[model.statistics[0].offset + 2], 1.25F);
  EXPECT_EQ(running[model.statistics[1].offset + 2], 2);
  EXPECT_EQ(running[3], 0) << "padding stays 0";
}

TEST(Statistics, EvaluationTakesTheRunningOnes) {
  constexpr double kTolerance = 1e-5;  // float32 logits
  for (const bool gamma : {true, false}) {
    const Model model = of_images(gamma);
    auto engine =
        make_cpu_engine(model, {.threads = 1, .batch = kStatisticsBatch, .evaluation_batch = kStatisticsBatch}).value();
    const AlignedArray<float> parameters = random_parameters(model, 0.5F, 1);
    const Batch batch = random_batch(model, kStatisticsBatch, 2);
    AlignedArray<float> running(model.statistics.padded_count());
    for (int c = 0; c < 3; ++c) {
      running[model.statistics[0].offset + c] = 0.1F * static_cast<float>(c);
      running[model.statistics[1].offset + c] = 0.5F + static_cast<float>(c);
    }
    const std::size_t pixels = 24, beta = gamma ? 1 : 0;
    double expected = 0;
    for (int n = 0; n < kStatisticsBatch; ++n) {
      std::vector<double> row;
      for (std::size_t c = 0; c < 3; ++c)
        for (std::size_t p = 0; p < pixels; ++p) {
          const double x = batch.images[(static_cast<std::size_t>(n) * 3 + c) * pixels + p];
          const double scale = (gamma ? parameters[model.segments[0].offset + c] : 1.0) /
                               std::sqrt(running[model.statistics[1].offset + c] + double{1e-3F});
          row.push_back(std::max(
              (x - running[model.statistics[0].offset + c]) * scale + parameters[model.segments[beta].offset + c],
              0.0));
        }
      double sum = 0, label = 0;
      for (std::size_t o = 0; o < 4; ++o) {
        double logit = parameters[model.segments[beta + 2].offset + o];
        for (std::size_t i = 0; i < row.size(); ++i)
          logit += parameters[model.segments[beta + 1].offset + o * row.size() + i] * row[i];
        sum += std::exp(logit);
        if (o == static_cast<std::size_t>(batch.labels[static_cast<std::size_t>(n)])) label = logit;
      }
      expected += std::log(sum) - label;
    }
    const EvaluationCounts counts = engine->evaluate(parameters.data(), running.data(), batch);
    EXPECT_NEAR(counts.loss_sum, expected, kTolerance * expected);
    EXPECT_EQ(counts.correct_5, 5u) << "of four classes";
  }
}

TEST(Statistics, OneValueHasNone) {
  const Model model = ModelBuilder("m", {3, 1, 1}).batch_normalization("bn1", {}).dense("fc", 2, {}).build().value();
  const auto engine = make_cpu_engine(model, {.threads = 1, .batch = 1, .evaluation_batch = 1});
  ASSERT_FALSE(engine.ok());
  EXPECT_NE(engine.error().message.find("bn1 normalizes over one value"), std::string::npos) << engine.error().message;
}

TEST(Counts, TopFive) {
  const Model model = ModelBuilder("m", {9, 1, 1}).dense("fc", 9, {}).build().value();
  auto engine = make_cpu_engine(model, {.threads = 1, .batch = 1, .evaluation_batch = 9}).value();
  AlignedArray<float> parameters = flat_array(model);
  for (int i = 0; i < 9; ++i) parameters[model.segments[1].offset + i] = static_cast<float>(i);  // logits 0 .. 8
  Batch batch;
  batch.count = 9;
  batch.images = AlignedArray<float>(81);
  for (int i = 0; i < 9; ++i) batch.labels.push_back(i);
  const EvaluationCounts counts = engine->evaluate(parameters.data(), batch);
  EXPECT_EQ(counts.correct, 1u);
  EXPECT_EQ(counts.correct_5, 5u);
  EXPECT_EQ(counts.total, 9u);
}

}  // namespace
}  // namespace tg::engine

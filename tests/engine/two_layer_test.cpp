// A dense network of two layers against its gradient written out by hand in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/engine.h"
#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {
namespace {

constexpr int kInputs = 24, kHidden = 17, kClasses = 6, kTwoLayerBatch = 5;
constexpr double kSumTolerance = 2e-6;  // float32 rounding of sums of 24 products of size below 1

TEST(TwoLayers, EqualTheHandWrittenGradient) {
  const Model model =
      ModelBuilder("two", {kInputs, 1, 1}).dense("fc1", kHidden, {}).relu().dense("fc2", kClasses, {}).build().value();
  auto engine = make_cpu_engine(model, {.threads = 1, .batch = kTwoLayerBatch, .evaluation_batch = kTwoLayerBatch});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Batch batch = random_batch(model, kTwoLayerBatch, 31);
  const AlignedArray<float> flat = random_parameters(model, 0.5F, 32);
  AlignedArray<float> gradient = flat_array(model);
  const double loss = (*engine)->forward(flat.data(), batch);
  (*engine)->backward(1.0F, gradient.data(), [](std::size_t, std::size_t) {});

  const auto at = [&](std::size_t segment) { return model.segments[segment].offset; };
  std::vector<double> expected(gradient.size());
  double expected_loss = 0;
  for (int n = 0; n < kTwoLayerBatch; ++n) {
    const float* x = batch.images.data() + n * kInputs;
    double hidden[kHidden], logits[kClasses], sum = 0;
    for (int h = 0; h < kHidden; ++h) {
      hidden[h] = flat[at(1) + h];
      for (int i = 0; i < kInputs; ++i) hidden[h] += static_cast<double>(flat[at(0) + h * kInputs + i]) * x[i];
      hidden[h] = std::max(hidden[h], 0.0);
    }
    for (int c = 0; c < kClasses; ++c) {
      logits[c] = flat[at(3) + c];
      for (int h = 0; h < kHidden; ++h) logits[c] += flat[at(2) + c * kHidden + h] * hidden[h];
      sum += std::exp(logits[c]);
    }
    expected_loss += std::log(sum) - logits[batch.labels[n]];
    double hidden_gradient[kHidden] = {};
    for (int c = 0; c < kClasses; ++c) {
      const double d = std::exp(logits[c]) / sum - (c == batch.labels[n] ? 1 : 0);
      expected[at(3) + c] += d;
      for (int h = 0; h < kHidden; ++h) {
        expected[at(2) + c * kHidden + h] += d * hidden[h];
        hidden_gradient[h] += d * flat[at(2) + c * kHidden + h];
      }
    }
    for (int h = 0; h < kHidden; ++h) {
      if (hidden[h] <= 0) continue;
      expected[at(1) + h] += hidden_gradient[h];
      for (int i = 0; i < kInputs; ++i) expected[at(0) + h * kInputs + i] += hidden_gradient[h] * x[i];
    }
  }
  EXPECT_NEAR(loss, expected_loss, kSumTolerance * expected_loss);
  for (std::size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(gradient[i], expected[i], kSumTolerance) << i;
}

}  // namespace
}  // namespace tg::engine

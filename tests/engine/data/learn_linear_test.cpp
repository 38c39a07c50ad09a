// The synthetic set must not be so easy that learning it proves nothing: a linear softmax model stays below 93 %,
// about what it reaches on MNIST, however long it trains.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/dataset.h"

namespace tg::engine {
namespace {

constexpr std::size_t kInputs = 784, kClasses = 10;
constexpr double kMaxLinearAccuracy = 0.93;
constexpr double kMinLinearAccuracy = 0.60;  // below it the test's own training has failed

struct LinearModel {
  std::vector<float> weights = std::vector<float>(kInputs * kClasses), momentum = weights;
  std::vector<float> bias = std::vector<float>(kClasses), bias_momentum = bias;

  void logits(const float* x, float* out) const {
    std::copy(bias.begin(), bias.end(), out);
    for (std::size_t i = 0; i < kInputs; ++i) {
      for (std::size_t c = 0; c < kClasses; ++c) out[c] += x[i] * weights[i * kClasses + c];
    }
  }

  void step(const Batch& batch, float rate) {
    std::vector<float> gradient(weights.size()), bias_gradient(kClasses);
    const float scale = 1.0f / static_cast<float>(batch.count);
    for (std::size_t n = 0; n < batch.labels.size(); ++n) {
      const float* x = batch.images.data() + n * kInputs;
      float p[kClasses], sum = 0;
      logits(x, p);
      const float most = *std::max_element(p, p + kClasses);
      for (float& v : p) sum += v = std::exp(v - most);
      for (std::size_t c = 0; c < kClasses; ++c) {
        p[c] = (p[c] / sum - (batch.labels[n] == static_cast<int>(c) ? 1.0f : 0.0f)) * scale;
        bias_gradient[c] += p[c];
      }
      for (std::size_t i = 0; i < kInputs; ++i) {
        for (std::size_t c = 0; c < kClasses; ++c) gradient[i * kClasses + c] += x[i] * p[c];
      }
    }
    update(weights, momentum, gradient, rate);
    update(bias, bias_momentum, bias_gradient, rate);
  }

  static void update(std::vector<float>& w, std::vector<float>& v, const std::vector<float>& g, float rate) {
    for (std::size_t i = 0; i < w.size(); ++i) {
      v[i] = 0.9f * v[i] + g[i];
      w[i] -= rate * v[i];
    }
  }
};

TEST(Learn, LinearModelStaysBelow93Percent) {
  DatasetOptions options;
  options.kind = DatasetKind::kSynthetic;
  const auto loaded = load_dataset(options);
  ASSERT_TRUE(loaded.ok());
  const Dataset& data = **loaded;
  constexpr int kSteps = 3000, kBatch = 64;
  LinearModel model;
  const Recipe recipe = make_recipe(data, data.train.stored).value();
  SampleStream stream(1, data.train.count());
  Batch batch;
  batch.count = kBatch;
  for (int k = 0; k < kSteps; ++k) {
    fill_training_batch(data, recipe, stream, 1, static_cast<std::uint64_t>(k) * kBatch, batch);
    model.step(batch, 0.01f * std::sqrt(1.0f - static_cast<float>(k) / kSteps));
  }
  Batch test;
  test.count = static_cast<int>(data.test.count());
  fill_evaluation_batch(data, recipe, 0, test);
  int correct = 0;
  for (std::size_t n = 0; n < test.labels.size(); ++n) {
    float scores[kClasses];
    model.logits(test.images.data() + n * kInputs, scores);
    correct += std::max_element(scores, scores + kClasses) - scores == test.labels[n] ? 1 : 0;
  }
  const double accuracy = static_cast<double>(correct) / test.count;
  RecordProperty("accuracy", std::to_string(accuracy));
  std::printf("linear softmax model: %.2f %% after %d steps\n", 100 * accuracy, kSteps);
  EXPECT_LT(accuracy, kMaxLinearAccuracy);
  EXPECT_GT(accuracy, kMinLinearAccuracy);
}

}  // namespace
}  // namespace tg::engine

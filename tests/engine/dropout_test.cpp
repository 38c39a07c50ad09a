#include "engine/graph/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/engine.h"
#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {
namespace {

std::vector<float> masked(const DropoutMask& mask, std::uint64_t position, std::size_t features) {
  const std::vector<float> ones(features, 1.0F);
  std::vector<float> result(features, -1);
  mask.apply(position, ones, result);
  return result;
}

// Frozen: every node that computes a sample drops the same features.
TEST(DropoutMask, HasTheSameBitsEverywhere) {
  EXPECT_EQ(masked(DropoutMask(0.5, 1, 3), 7, 11), masked(DropoutMask(0.5, 1, 3), 7, 11));
  std::uint64_t bits = 0;
  for (const float each : masked(DropoutMask(0.5, 1, 3), 7, 64)) bits = bits << 1 | (each > 0 ? 1 : 0);
  EXPECT_EQ(bits, 8253280349597720917u);
}

TEST(DropoutMask, DropsItsShareAndKeepsTheMean) {
  constexpr std::size_t kFeatures = 100'003;
  for (const double probability : {0.0, 0.08, 0.2, 0.5, 0.7}) {
    const std::vector<float> result = masked(DropoutMask(probability, 5, 0), 1, kFeatures);
    double dropped = 0, sum = 0;
    for (const float each : result) {
      dropped += each == 0 ? 1 : 0;
      sum += each;
      if (each != 0) {
        ASSERT_NEAR(each, 1 / (1 - probability), 1e-4);
      }
    }
    const double sigma = std::sqrt(probability * (1 - probability) / kFeatures);
    EXPECT_NEAR(dropped / kFeatures, probability, 4 * sigma + 1e-5);  // 2^-17: the grid of the threshold
    EXPECT_NEAR(sum / kFeatures, 1, 4 * sigma / (1 - probability) + 1e-4);
  }
}

TEST(DropoutMask, DependsOnSeedPositionAndOperator) {
  const std::vector<float> one = masked(DropoutMask(0.5, 1, 2), 3, 1000);
  for (const std::vector<float>& other :
       {masked(DropoutMask(0.5, 2, 2), 3, 1000), masked(DropoutMask(0.5, 1, 3), 3, 1000),
        masked(DropoutMask(0.5, 1, 2), 4, 1000), masked(DropoutMask(0.5, 1, 2), 3 + (std::uint64_t{1} << 32), 1000)}) {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < one.size(); ++i) equal += one[i] == other[i] ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(equal), 500, 80);  // five deviations
  }
}

TEST(DropoutMask, WorksInPlaceAndOnTails) {
  const DropoutMask mask(0.3, 11, 1);
  const std::vector<float> whole = masked(mask, 5, 67);
  for (std::size_t count = 0; count < whole.size(); ++count) {
    std::vector<float> values(count + 1, 1.0F);
    mask.apply(5, std::span(values).first(count), std::span(values).first(count));
    EXPECT_TRUE(std::equal(values.begin(), values.end() - 1, whole.begin())) << count;
    EXPECT_EQ(values.back(), 1.0F) << count;
  }
}

// The gradient of a batch is the sum of its parts' gradients, whichever member has which part.
TEST(Dropout, DoesNotDependOnTheMember) {
  constexpr double kTolerance = 1e-5;  // the same float32 products in another order
  const Model model = ModelBuilder("m", {1, 5, 5})
                          .dense("fc1", 40, {})
                          .relu()
                          .dropout(0.5)
                          .dense("fc2", 30, {})
                          .dropout(0.2)
                          .dense("fc3", 4, {})
                          .build()
                          .value();
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  const int kWhole = 9, kFirst = 4;
  const std::uint64_t kPosition = 77;
  const Batch all = random_batch(model, kWhole, 4);
  std::vector<double> sum(model.segments.padded_count());
  double loss = 0;
  const auto add_part = [&](int first, int count, double sign) {
    auto engine = make_cpu_engine(model, {.threads = 1, .batch = count, .evaluation_batch = 1, .seed = 42}).value();
    Batch part;
    part.count = count;
    part.first_position = kPosition + static_cast<std::uint64_t>(first);
    const std::size_t pixels = model.input.elements();
    part.images = AlignedArray<float>(static_cast<std::size_t>(count) * pixels);
    std::copy_n(all.images.begin() + static_cast<std::size_t>(first) * pixels, part.images.size(), part.images.begin());
    part.labels.assign(all.labels.begin() + first, all.labels.begin() + first + count);
    AlignedArray<float> gradient = flat_array(model);
    loss += sign * engine->forward(parameters.data(), part);
    engine->backward(1, gradient.data(), [](std::size_t, std::size_t) {});
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += sign * gradient[i];
  };
  add_part(0, kWhole, 1);
  const std::vector<double> whole = sum;
  const double whole_loss = loss;
  add_part(0, kFirst, -1);
  add_part(kFirst, kWhole - kFirst, -1);
  EXPECT_NEAR(loss, 0, kTolerance * whole_loss);
  double largest = 0;
  for (const double each : whole) largest = std::max(largest, std::abs(each));
  EXPECT_GT(largest, 0);
  for (std::size_t i = 0; i < sum.size(); ++i) ASSERT_NEAR(sum[i], 0, kTolerance * largest) << i;
}

TEST(Dropout, EvaluationDropsNothing) {
  const auto build = [](double probability) {
    return ModelBuilder("m", {1, 5, 5}).dense("fc1", 40, {}).dropout(probability).dense("fc2", 4, {}).build().value();
  };
  const Model with = build(0.5), without = build(0);
  const AlignedArray<float> parameters = random_parameters(with, 0.5F, 3);
  const Batch batch = random_batch(with, 6, 4);
  const auto losses = [&](const Model& model) {
    auto engine = make_cpu_engine(model, {.threads = 1, .batch = 6, .evaluation_batch = 6, .seed = 42}).value();
    const double trained = engine->forward(parameters.data(), batch);
    return std::pair(trained, engine->evaluate(parameters.data(), batch).loss_sum);
  };
  EXPECT_EQ(losses(with).second, losses(without).second);
  EXPECT_NE(losses(with).first, losses(without).first);
}

}  // namespace
}  // namespace tg::engine

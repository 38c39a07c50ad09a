// The engine's gradient against central differences of the double-precision reference network: every element of small
// networks that hold each layer in each place where the engine treats it differently, and one random
// direction per segment of the real models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <span>
#include <tuple>

#include "engine/engine.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/reference_network.h"
#include "tests/engine/small_networks.h"

namespace tg::engine {

static void PrintTo(const ModelOptions& value, std::ostream* out) { *out << to_word(value.kind); }
static void PrintTo(const SmallNetwork& value, std::ostream* out) { *out << value.name; }

namespace {

// The step of the differences: error h^2 ~ 1e-12 from curvature, 1e-16/h ~ 1e-10 from rounding; and steps so small that
// next to no maximum or relu changes sides between the two ends.
constexpr double kStep = 1e-6;
// float32 sums of up to a few thousand products keep about 1e-5 of their norm; ten times that.
constexpr double kGradientTolerance = 1e-4;
// The loss is a float32 forward pass: logits to 1e-6 or so, relative.
constexpr double kLossTolerance = 1e-5;
constexpr std::uint64_t kSeed = 0x123456789;  // dropout's

std::vector<double> in_double(const AlignedArray<float>& values) { return {values.begin(), values.end()}; }

// (f(x + h u) - f(x - h u)) / 2h; parameters are as before afterwards, up to rounding.
template <class Move>
double central_difference(const Model& model, std::vector<double>& parameters, const Batch& batch, Move move) {
  move(kStep);
  const double above = reference_loss(model, parameters, batch, kSeed);
  move(-2 * kStep);
  const double below = reference_loss(model, parameters, batch, kSeed);
  move(kStep);
  return (above - below) / (2 * kStep);
}

class EachSmallNetwork : public testing::TestWithParam<SmallNetwork> {};

TEST_P(EachSmallNetwork, EveryGradientIsTheDifference) {
  const Result<Model> made = GetParam().model();
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Model& model = *made;
  const int kSamples = 3;
  const float kFactor = 1.5F;
  auto engine = make_cpu_engine(model, {.threads = 1, .batch = kSamples, .evaluation_batch = 1, .seed = kSeed});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  Batch batch = random_batch(model, kSamples, 11);
  batch.first_position = 0xfffffffeU;  // its samples cross the counter's low word
  const AlignedArray<float> flat = random_parameters(model, 0.5F, 12);
  AlignedArray<float> gradient = flat_array(model);
  const double loss = (*engine)->forward(flat.data(), batch);
  (*engine)->backward(kFactor, gradient.data(), [](std::size_t, std::size_t) {});

  std::vector<double> parameters = in_double(flat);
  EXPECT_NEAR(loss, reference_loss(model, parameters, batch, kSeed), kLossTolerance * loss);
  for (const Segment& segment : model.segments.segments()) {
    double largest = 0;
    for (std::size_t i = 0; i < segment.element_count; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(gradient[segment.offset + i])));
    }
    EXPECT_GT(largest, 0) << segment.name;
    for (std::size_t i = 0; i < segment.element_count; ++i) {
      const double expected = kFactor * central_difference(model, parameters, batch, [&](double step) {
                                parameters[segment.offset + i] += step;
                              });
      ASSERT_NEAR(gradient[segment.offset + i], expected, kGradientTolerance * largest)
          << segment.name << '[' << i << ']';
    }
  }
}

class ClassWeights : public testing::TestWithParam<double> {};

// One class's weight is 0: it leaves no gradient.
TEST_P(ClassWeights, ScaleEachSamplesLossAndGradient) {
  Model model =
      make_model({.kind = ModelKind::kMlp, .classes = 3, .hidden = {8}, .label_smoothing = GetParam()}).value();
  const AlignedArray<float> flat = random_parameters(model, 0.05F, 12);
  Batch batch = random_batch(model, 3, 11);
  const auto computed = [&](const std::vector<std::int32_t>& labels, std::vector<double> weights) {
    batch.labels = labels;
    model.class_weights = std::move(weights);
    auto engine = make_cpu_engine(model, {.threads = 1, .batch = 3, .evaluation_batch = 3, .seed = kSeed}).value();
    const double loss = engine->forward(flat.data(), batch);
    EXPECT_NEAR(loss, reference_loss(model, in_double(flat), batch, kSeed), kLossTolerance * (1 + loss));
    AlignedArray<float> gradient = flat_array(model);
    engine->backward(1.0F, gradient.data(), [](std::size_t, std::size_t) {});
    const EvaluationCounts counts = engine->evaluate(flat.data(), batch);
    return std::tuple(loss, std::vector<float>(gradient.begin(), gradient.end()), counts.loss_sum);
  };
  const auto [loss, gradient, evaluated] = computed({0, 1, 2}, {});
  const auto [same_loss, same_gradient, same_evaluated] = computed({0, 1, 2}, {1, 1, 1});
  EXPECT_NEAR(same_loss, loss, 1e-12 * loss);
  EXPECT_EQ(same_gradient, gradient);
  const auto [twice, twice_gradient, twice_evaluated] = computed({0, 1, 2}, {2, 2, 2});
  EXPECT_NEAR(twice, 2 * loss, 1e-12 * loss);
  EXPECT_EQ(twice_evaluated, evaluated) << "evaluation has no weights";
  for (std::size_t i = 0; i < gradient.size(); ++i) ASSERT_EQ(twice_gradient[i], 2 * gradient[i]) << i;
  const auto [none, no_gradient, none_evaluated] = computed({2, 2, 2}, {1, 1, 0});
  EXPECT_EQ(none, 0);
  EXPECT_TRUE(std::ranges::all_of(no_gradient, [](float one) { return one == 0; }));
  computed({2, 0, 1}, {0.5, 3, 1.25});
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutSmoothing, ClassWeights, testing::Values(0.0, 0.1));

INSTANTIATE_TEST_SUITE_P(Layers, EachSmallNetwork, testing::ValuesIn(small_networks()),
                         [](const testing::TestParamInfo<SmallNetwork>& each) { return each.param.name; });

// Loss, and slope along a random direction of each segment from the first given on.
void expect_slopes(const Model& model, std::size_t first_segment) {
  const int kSamples = 2;
  auto engine = make_cpu_engine(model, {.threads = 2, .batch = kSamples, .evaluation_batch = 1, .seed = kSeed});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Batch batch = random_batch(model, kSamples, 21);
  AlignedArray<float> flat = flat_array(model);
  initialize(model.segments, 22, flat.data());
  AlignedArray<float> gradient = flat_array(model);
  const double loss = (*engine)->forward(flat.data(), batch);
  (*engine)->backward(1.0F, gradient.data(), [](std::size_t, std::size_t) {});

  std::vector<double> parameters = in_double(flat);
  EXPECT_NEAR(loss, reference_loss(model, parameters, batch, kSeed), kLossTolerance * loss);
  std::mt19937_64 random(23);
  for (const Segment& segment : std::span(model.segments.segments()).subspan(first_segment)) {
    // A direction of signs: the slope along it has the size of the gradient's norm, and no element hides.
    std::vector<double> direction(segment.element_count);
    double slope = 0, squares = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      const double g = gradient[segment.offset + i];
      direction[i] = (random() & 1) != 0 ? 1 : -1;
      slope += g * direction[i];
      squares += g * g;
    }
    // Shorter steps where many parameters move at once, for the kinks' sake.
    const double scale = 1 / std::sqrt(static_cast<double>(direction.size()));
    const double expected = central_difference(model, parameters, batch,
                                               [&](double step) {
                                                 for (std::size_t i = 0; i < direction.size(); ++i) {
                                                   parameters[segment.offset + i] += step * scale * direction[i];
                                                 }
                                               }) /
                            scale;
    EXPECT_GT(squares, 0) << segment.name;
    EXPECT_NEAR(slope, expected, kGradientTolerance * std::sqrt(squares)) << segment.name;
  }
}

class RealModel : public testing::TestWithParam<ModelOptions> {};

TEST_P(RealModel, GradientAlongARandomDirectionIsTheDifference) { expect_slopes(make_model(GetParam()).value(), 0); }

// The slope before and behind the layer; without dropout the loss.
TEST(GivenDropout, IsComputed) {
  const auto with = [](double probability) {
    return make_model({.kind = ModelKind::kGooglenetSlim, .input = ImageShape{3, 48, 48}, .dropout = {probability}})
        .value();
  };
  const Model half = with(0.5), none = with(0);
  expect_slopes(half, half.segments.size() - 3);
  expect_slopes(none, none.segments.size());
}

// The larger ones on images as small as they take: the reference computes all of it twice for every segment.
INSTANTIATE_TEST_SUITE_P(Models, RealModel,
                         testing::Values(ModelOptions{.kind = ModelKind::kLenet},
                                         ModelOptions{.kind = ModelKind::kCifarnet},
                                         ModelOptions{.kind = ModelKind::kMlp, .label_smoothing = 0.1},
                                         ModelOptions{.kind = ModelKind::kResnet20, .input = ImageShape{3, 8, 8}}),
                         [](const testing::TestParamInfo<ModelOptions>& each) {
                           std::string name = to_word(each.param.kind);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tg::engine

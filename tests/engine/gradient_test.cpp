// The engine's gradient against central differences of the double-precision reference network: every element of small
// networks that hold each layer in each place where the engine treats it differently, and one random
// direction per segment of the real models.
#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <random>

#include "engine/engine.h"
#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/reference_network.h"

namespace tg::engine {
namespace {

// Of the differences: error h^2 ~ 1e-12 from curvature, 1e-16/h ~ 1e-10 from rounding; and steps so small that next to
// no maximum or relu changes sides between the two ends.
constexpr double kStep = 1e-6;
// float32 sums of up to a few thousand products keep about 1e-5 of their norm; ten times that.
constexpr double kGradientTolerance = 1e-4;
// The loss is a float32 forward pass: logits to 1e-6 or so, relative.
constexpr double kLossTolerance = 1e-5;

struct Case {
  std::string name;
  Model (*model)();
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

ModelBuilder small(ImageShape input = {3, 7, 7}) { return ModelBuilder("small", input); }

const LocalResponseNormalization kStrong{.radius = 2, .bias = 1.5F, .alpha = 0.4F, .beta = 0.75F};

const Case kCases[] = {
    {"dense",
     [] {
       return small({2, 3, 3}).dense("fc1", 5, {}).build();
     }},
    {"dense_relu",
     [] {
       return small({2, 3, 3}).dense("fc1", 9, {}).relu().dense("fc2", 4, {}).build();
     }},
    {"convolution", [] { return small().convolution("conv1", 5, 3, {}).dense("fc1", 4, {}).build(); }},
    {"convolution_twice",
     [] { return small().convolution("conv1", 5, 5, {}).convolution("conv2", 6, 3, {}).dense("fc1", 4, {}).build(); }},
    {"convolution_relu",
     [] {
       return small()
           .convolution("conv1", 5, 3, {})
           .relu()
           .convolution("conv2", 4, 3, {})
           .relu()
           .dense("fc1", 4, {})
           .build();
     }},
    {"pooling_2", [] { return small().convolution("conv1", 5, 3, {}).max_pooling(2, 2).dense("fc1", 4, {}).build(); }},
    {"pooling_3_of_relu",
     [] {
       return small({3, 8, 8}).convolution("conv1", 5, 3, {}).relu().max_pooling(3, 2).dense("fc1", 4, {}).build();
     }},
    {"pooling_then_relu",
     [] {
       return small({3, 8, 8}).convolution("conv1", 5, 3, {}).max_pooling(3, 2).relu().dense("fc1", 4, {}).build();
     }},
    {"pooling_of_images",
     [] { return small().max_pooling(3, 2).convolution("conv1", 4, 3, {}).dense("fc1", 3, {}).build(); }},
    {"normalization",
     [] { return small().convolution("conv1", 9, 3, {}).normalization(kStrong).dense("fc1", 4, {}).build(); }},
    {"relu_of_normalization",
     [] {
       return small({3, 8, 8})
           .convolution("conv1", 16, 3, {})
           .normalization(kStrong)
           .relu()
           .max_pooling(2, 2)
           .dense("fc1", 4, {})
           .build();
     }},
};

std::vector<double> in_double(const AlignedArray<float>& values) { return {values.begin(), values.end()}; }

// (f(x + h u) - f(x - h u)) / 2h; parameters are as before afterwards, up to rounding.
template <class Move>
double central_difference(const Model& model, std::vector<double>& parameters, const Batch& batch, Move move) {
  move(kStep);
  const double above = reference_loss(model, parameters, batch);
  move(-2 * kStep);
  const double below = reference_loss(model, parameters, batch);
  move(kStep);
  return (above - below) / (2 * kStep);
}

class SmallNetwork : public testing::TestWithParam<Case> {};

TEST_P(SmallNetwork, EveryGradientIsTheDifference) {
  const Model model = GetParam().model();
  const int kBatch = 3;
  const float kFactor = 1.5F;
  auto engine = make_cpu_engine(model, {.threads = 1, .batch = kBatch, .evaluation_batch = 1});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Batch batch = random_batch(model, kBatch, 11);
  const AlignedArray<float> flat = random_parameters(model, 0.5F, 12);
  AlignedArray<float> gradient = flat_array(model);
  const double loss = (*engine)->forward(flat.data(), batch);
  (*engine)->backward(kFactor, gradient.data(), [](std::size_t, std::size_t) {});

  std::vector<double> parameters = in_double(flat);
  EXPECT_NEAR(loss, reference_loss(model, parameters, batch), kLossTolerance * loss);
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

INSTANTIATE_TEST_SUITE_P(Layers, SmallNetwork, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& each) { return each.param.name; });

class RealModel : public testing::TestWithParam<ModelKind> {};

TEST_P(RealModel, GradientAlongARandomDirectionIsTheDifference) {
  const Model model = make_model(GetParam());
  const int kBatch = 2;
  auto engine = make_cpu_engine(model, {.threads = 2, .batch = kBatch, .evaluation_batch = 1});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Batch batch = random_batch(model, kBatch, 21);
  AlignedArray<float> flat = flat_array(model);
  initialize(model.segments, 22, flat.data());
  AlignedArray<float> gradient = flat_array(model);
  const double loss = (*engine)->forward(flat.data(), batch);
  (*engine)->backward(1.0F, gradient.data(), [](std::size_t, std::size_t) {});

  std::vector<double> parameters = in_double(flat);
  EXPECT_NEAR(loss, reference_loss(model, parameters, batch), kLossTolerance * loss);
  std::mt19937_64 random(23);
  for (const Segment& segment : model.segments.segments()) {
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

INSTANTIATE_TEST_SUITE_P(Models, RealModel, testing::Values(ModelKind::kLenet, ModelKind::kCifarnet),
                         [](const testing::TestParamInfo<ModelKind>& each) {
                           return std::string(to_word(each.param));
                         });

}  // namespace
}  // namespace tg::engine

// The engine's gradient against central differences of the double-precision reference network: every element of small
// networks that hold each layer in each place where the engine treats it differently, and one random
// direction per segment of the real models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>

#include "engine/engine.h"
#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/reference_network.h"

namespace tg::engine {

static void PrintTo(const ModelOptions& value, std::ostream* out) { *out << to_word(value.kind); }

namespace {

// Of the differences: error h^2 ~ 1e-12 from curvature, 1e-16/h ~ 1e-10 from rounding; and steps so small that next to
// no maximum or relu changes sides between the two ends.
constexpr double kStep = 1e-6;
// float32 sums of up to a few thousand products keep about 1e-5 of their norm; ten times that.
constexpr double kGradientTolerance = 1e-4;
// The loss is a float32 forward pass: logits to 1e-6 or so, relative.
constexpr double kLossTolerance = 1e-5;
constexpr std::uint64_t kSeed = 0x123456789;  // of dropout

struct Case {
  std::string name;
  Result<Model> (*model)();
};

void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

ModelBuilder small(ImageShape input = {3, 7, 7}) { return ModelBuilder("small", input); }

const LocalResponseNormalization kStrong{.radius = 2, .bias = 1.5F, .alpha = 0.4F, .beta = 0.75F};
const Filters kBare{.count = 6, .kernel = 3, .bias = false};  // before a batch normalization, where a bias does nothing

// Convolution and batch normalization, twice: the trunk of the small residual networks.
ModelBuilder residual(int stride) {
  ModelBuilder builder = small({3, 8, 6});
  builder.convolution("conv1", kBare, {}).batch_normalization("bn1", {}).relu();
  const std::size_t input = builder.place();
  builder.convolution("conv2", {.count = 6, .kernel = 3, .stride = stride, .bias = false}, {})
      .batch_normalization("bn2", {})
      .relu()
      .convolution("conv3", kBare, {})
      .batch_normalization("bn3", {});
  const std::size_t branch = builder.place();
  std::size_t shortcut = input;
  if (stride > 1) {
    builder.from(input)
        .convolution("downsample", {.count = 6, .stride = stride, .bias = false}, {})
        .batch_normalization("bn4", {});
    shortcut = builder.place();
  }
  builder.from(branch).add(shortcut).relu();
  return builder;
}

const Case kCases[] = {
    {"dense",
     [] {
       return small({2, 3, 3}).dense("fc1", 5, {}).build();
     }},
    {"dense_relu",
     [] {
       return small({2, 3, 3}).dense("fc1", 9, {}).relu().dense("fc2", 4, {}).build();
     }},
    {"dense_without_bias",
     [] {
       return small({2, 3, 3}).dense("fc1", 9, {}, false).relu().dense("fc2", 4, {}, false).build();
     }},
    {"convolution",
     [] {
       return small().convolution("conv1", {5, 3}, {}).dense("fc1", 4, {}).build();
     }},
    {"convolution_twice",
     [] {
       return small().convolution("conv1", {5, 5}, {}).convolution("conv2", {6, 3}, {}).dense("fc1", 4, {}).build();
     }},
    {"convolution_relu",
     [] {
       return small()
           .convolution("conv1", {5, 3}, {})
           .relu()
           .convolution("conv2", {4, 3}, {})
           .relu()
           .dense("fc1", 4, {})
           .build();
     }},
    {"convolution_in_strides_without_bias",
     [] {
       return small({3, 9, 6})
           .convolution("conv1", {.count = 5, .kernel = 3, .stride = 2, .bias = false}, {})
           .convolution("conv2", {.count = 4, .kernel = 3, .stride = 2, .padding = 1}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"convolution_dilated",
     [] {
       return small({3, 9, 8})
           .convolution("conv1", {.count = 5, .kernel = 3, .padding = 2, .dilation = 2}, {})
           .relu()
           .convolution("conv2", {.count = 4, .kernel = 3, .padding = 0, .dilation = 2}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"convolution_in_groups",
     [] {
       return small({4, 7, 6})
           .convolution("conv1", {.count = 6, .kernel = 3, .groups = 2}, {})
           .relu()
           .convolution("conv2", {.count = 9, .kernel = 3, .stride = 2, .groups = 3, .bias = false}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"pooling_2",
     [] {
       return small().convolution("conv1", {5, 3}, {}).max_pooling({2, 2}).dense("fc1", 4, {}).build();
     }},
    {"pooling_3_of_relu",
     [] {
       return small({3, 8, 8}).convolution("conv1", {5, 3}, {}).relu().max_pooling({3, 2}).dense("fc1", 4, {}).build();
     }},
    {"pooling_then_relu",
     [] {
       return small({3, 8, 8}).convolution("conv1", {5, 3}, {}).max_pooling({3, 2}).relu().dense("fc1", 4, {}).build();
     }},
    {"pooling_of_images",
     [] {
       return small().max_pooling({3, 2}).convolution("conv1", {4, 3}, {}).dense("fc1", 3, {}).build();
     }},
    {"pooling_up_to_the_ceiling",
     [] {
       return small({3, 8, 7})
           .convolution("conv1", {5, 3}, {})
           .relu()
           .max_pooling({.kernel = 3, .stride = 2, .padding = 0, .ceil = true})
           .convolution("conv2", {5, 3}, {})
           .max_pooling({.kernel = 3, .stride = 2, .padding = 1})
           .dense("fc1", 4, {})
           .build();
     }},
    {"average",
     [] {
       return small({3, 8, 7})
           .convolution("conv1", {5, 3}, {})
           .relu()
           .average_pooling({.kernel = 3, .stride = 2, .padding = 1})
           .convolution("conv2", {5, 3}, {})
           .average_pooling({.kernel = 2, .stride = 2, .padding = 0})
           .dense("fc1", 4, {})
           .build();
     }},
    {"average_without_padding_up_to_the_ceiling",
     [] {
       return small({3, 8, 7})
           .convolution("conv1", {5, 3}, {})
           .average_pooling({.kernel = 3, .stride = 2, .padding = 1, .ceil = true, .count_padding = false})
           .average_pooling({.kernel = 3, .stride = 3, .padding = 1, .ceil = true})
           .dense("fc1", 4, {})
           .build();
     }},
    {"average_of_parts",
     [] {
       return small({3, 7, 8})
           .convolution("conv1", {5, 3}, {})
           .relu()
           .adaptive_average(3, 5)
           .convolution("conv2", {4, 3}, {})
           .adaptive_average(1, 1)
           .dense("fc1", 4, {})
           .build();
     }},
    {"average_over_more_parts_than_pixels",
     [] {
       return small({3, 2, 3}).convolution("conv1", {5, 3}, {}).adaptive_average(4, 4).dense("fc1", 4, {}).build();
     }},
    {"normalization",
     [] {
       return small().convolution("conv1", {9, 3}, {}).normalization(kStrong).dense("fc1", 4, {}).build();
     }},
    {"normalization_in_groups",
     [] {
       LocalResponseNormalization by_column = kStrong;
       by_column.groups = 2;
       return small().convolution("conv1", {10, 3}, {}).normalization(by_column).dense("fc1", 4, {}).build();
     }},
    {"relu_of_normalization",
     [] {
       return small({3, 8, 8})
           .convolution("conv1", {16, 3}, {})
           .normalization(kStrong)
           .relu()
           .max_pooling({2, 2})
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization",
     [] {
       return small()
           .convolution("conv1", kBare, {})
           .batch_normalization("bn1", {})
           .convolution("conv2", {5, 3}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization_relu",
     [] {
       return small({3, 8, 6})
           .convolution("conv1", kBare, {})
           .batch_normalization("bn1", {.epsilon = 1e-3F})
           .relu()
           .max_pooling({2, 2})
           .convolution("conv2", {.count = 16, .kernel = 3, .bias = false}, {})
           .batch_normalization("bn2", {})
           .relu()
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization_without_gamma",
     [] {
       return small({3, 5, 4})
           .convolution("conv1", kBare, {})
           .batch_normalization("bn1", {.gamma = false})
           .relu()
           .convolution("conv2", {.count = 16, .kernel = 3, .bias = false}, {})
           .batch_normalization("bn2", {.gamma = false})
           .dense("fc1", 4, {})
           .build();
     }},
    {"batch_normalization_of_images",
     [] {
       return small().batch_normalization("bn1", {}).convolution("conv1", {5, 3}, {}).dense("fc1", 4, {}).build();
     }},
    {"residual", [] { return residual(1).adaptive_average(1, 1).dense("fc1", 4, {}).build(); }},
    {"residual_with_projection", [] { return residual(2).dense("fc1", 4, {}).build(); }},
    {"add_without_relu",
     [] {
       ModelBuilder builder = small();
       const std::size_t first = builder.convolution("conv1", {5, 3}, {}).relu().place();
       return builder.from(0)
           .convolution("conv2", {5, 3}, {})
           .add(first)
           .convolution("conv3", {4, 3}, {})
           .dense("fc1", 4, {})
           .build();
     }},
    {"concat_of_branches",
     [] {
       ModelBuilder builder = small({3, 8, 6});
       const std::size_t input = builder.convolution("conv1", {5, 3}, {}).relu().place();
       const std::size_t one = builder.convolution("conv2", {3, 1}, {}).relu().place();
       builder.from(input).convolution("conv3", {4, 1}, {}).relu().convolution("conv4", {2, 3}, {});
       const std::size_t three = builder.relu().place();
       const std::size_t pooled = builder.from(input).max_pooling({3, 1}).convolution("conv5", {6, 1}, {}).place();
       builder.concat({one, three, pooled, input}).convolution("conv6", {4, 3}, {});
       return builder.dense("fc1", 4, {}).build();
     }},
    {"relu_beside_another_reader",
     [] {
       ModelBuilder builder = small();
       const std::size_t raw = builder.convolution("conv1", {5, 3}, {}).place();
       const std::size_t positive = builder.relu().place();
       return builder.concat({raw, positive, raw}).max_pooling({3, 2}).dense("fc1", 4, {}).build();
     }},
    {"dropout",
     [] {
       return small({2, 4, 4})
           .dense("fc1", 19, {})
           .relu()
           .dropout(0.3)
           .dense("fc2", 17, {})
           .dropout(0.5)
           .relu()
           .dense("fc3", 4, {})
           .build();
     }},
    {"dropout_beside_another_reader",
     [] {
       ModelBuilder builder = small({2, 4, 4});
       const std::size_t whole = builder.dense("fc1", 19, {}).place();
       const std::size_t thinned = builder.dropout(0.4).place();
       return builder.concat({whole, thinned}).dense("fc2", 4, {}).build();
     }},
    {"auxiliary_heads",
     [] {
       ModelBuilder builder = small({3, 8, 6});
       const std::size_t early = builder.convolution("conv1", {5, 3}, {}).relu().place();
       const std::size_t late = builder.convolution("conv2", {5, 3}, {}).relu().place();
       builder.from(early).adaptive_average(2, 2).dense("aux1", 4, {}).auxiliary_head(0.3);
       builder.from(late).max_pooling({2, 2}).dense("aux2", 4, {}).auxiliary_head(0.7);
       return builder.from(late).dense("fc1", 4, {}).build(0.1);
     }},
};

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

class SmallNetwork : public testing::TestWithParam<Case> {};

TEST_P(SmallNetwork, EveryGradientIsTheDifference) {
  const Result<Model> made = GetParam().model();
  ASSERT_TRUE(made.ok()) << made.error().message;
  const Model& model = *made;
  const int kBatch = 3;
  const float kFactor = 1.5F;
  auto engine = make_cpu_engine(model, {.threads = 1, .batch = kBatch, .evaluation_batch = 1, .seed = kSeed});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  Batch batch = random_batch(model, kBatch, 11);
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

INSTANTIATE_TEST_SUITE_P(Layers, SmallNetwork, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& each) { return each.param.name; });

class RealModel : public testing::TestWithParam<ModelOptions> {};

TEST_P(RealModel, GradientAlongARandomDirectionIsTheDifference) {
  const Model model = make_model(GetParam()).value();
  const int kBatch = 2;
  auto engine = make_cpu_engine(model, {.threads = 2, .batch = kBatch, .evaluation_batch = 1, .seed = kSeed});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const Batch batch = random_batch(model, kBatch, 21);
  AlignedArray<float> flat = flat_array(model);
  initialize(model.segments, 22, flat.data());
  AlignedArray<float> gradient = flat_array(model);
  const double loss = (*engine)->forward(flat.data(), batch);
  (*engine)->backward(1.0F, gradient.data(), [](std::size_t, std::size_t) {});

  std::vector<double> parameters = in_double(flat);
  EXPECT_NEAR(loss, reference_loss(model, parameters, batch, kSeed), kLossTolerance * loss);
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

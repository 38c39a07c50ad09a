// A batch computed in parts is the batch, but for the rounding of its sums.
#include "engine/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "engine/models/builder.h"
#include "kernels/host_home.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {
namespace {

constexpr int kBatch = 12, kMicroBatch = 4, kParts = kBatch / kMicroBatch;
constexpr std::uint64_t kSeed = 42, kPosition = 77;
constexpr float kFactor = 0.3F;

kernels::Home& host() {
  static kernels::HostHome home(*kernels::available().back());
  return home;
}

std::unique_ptr<Engine> whole_engine(const Model& model, int batch = kBatch) {
  return make_cpu_engine(model, {.threads = 1, .batch = batch, .evaluation_batch = 3, .seed = kSeed}).value();
}

std::unique_ptr<Engine> in_parts(const Model& model, int batch = kBatch, int micro_batch = kMicroBatch) {
  return make_micro_batches(whole_engine(model, micro_batch), host(), {.batch = batch, .micro_batch = micro_batch});
}

Model with_dropout() {
  return ModelBuilder("m", {2, 9, 9})
      .convolution("conv1", {.count = 6, .kernel = 3}, {})
      .relu()
      .max_pooling({2, 2})
      .dense("fc1", 40, {})
      .relu()
      .dropout(0.5)
      .dense("fc2", 5, {})
      .build()
      .value();
}

Model with_normalization() {
  return ModelBuilder("m", {2, 6, 4})
      .convolution("conv1", {.count = 5, .kernel = 3, .bias = false}, {})
      .batch_normalization("bn1", {})
      .relu()
      .dense("fc", 4, {})
      .build()
      .value();
}

Batch some_batch(const Model& model) {
  Batch batch = random_batch(model, kBatch, 4);
  batch.first_position = kPosition;
  return batch;
}

Batch part_of(const Batch& batch, int part) {
  const std::size_t elements = batch.images.size() / kBatch, first = static_cast<std::size_t>(part) * kMicroBatch;
  Batch one;
  one.count = kMicroBatch;
  one.first_position = batch.first_position + first;
  one.images = AlignedArray<float>(kMicroBatch * elements);
  std::copy_n(batch.images.begin() + first * elements, one.images.size(), one.images.begin());
  one.labels.assign(batch.labels.begin() + part * kMicroBatch, batch.labels.begin() + (part + 1) * kMicroBatch);
  return one;
}

struct Step {
  double loss = 0;
  std::vector<float> gradient;
};

Step step_of(Engine& engine, const Model& model, const Batch& batch, float factor) {
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  AlignedArray<float> gradient = flat_array(model);
  Step step;
  step.loss = engine.forward(parameters.data(), batch);
  engine.backward(factor, gradient.data(), [](std::size_t, std::size_t) {});
  step.gradient.assign(gradient.begin(), gradient.end());
  return step;
}

TEST(MicroBatches, GiveTheGradientAndLossOfTheWholeBatch) {
  constexpr double kTolerance = 1e-5;  // the same float32 products in another order
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const Step whole = step_of(*whole_engine(model), model, batch, kFactor);
  const auto engine = in_parts(model);
  for (int repeat = 0; repeat < 2; ++repeat) {  // nothing of a step is left in the next one
    const Step parts = step_of(*engine, model, batch, kFactor);
    EXPECT_NEAR(parts.loss / whole.loss, 1, kTolerance);
    for (const Segment& segment : model.segments.segments()) {
      double largest = 0;
      for (std::size_t i = 0; i < segment.element_count; ++i)
        largest = std::max(largest, std::abs(double{whole.gradient[segment.offset + i]}));
      EXPECT_GT(largest, 0) << segment.name;
      for (std::size_t i = 0; i < segment.padded_count(); ++i)
        ASSERT_NEAR(parts.gradient[segment.offset + i], whole.gradient[segment.offset + i], kTolerance * largest)
            << segment.name << " " << i;
    }
  }
}

// Bit for bit: hence every sample has the mask of its position.
TEST(MicroBatches, AddTheirPartsInOrder) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const auto part_engine = whole_engine(model, kMicroBatch);
  std::vector<float> sum(model.segments.padded_count());
  double loss = 0;
  for (int part = 0; part < kParts; ++part) {
    const bool last = part + 1 == kParts;
    const Step one = step_of(*part_engine, model, part_of(batch, part), last ? kFactor : 1);
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] = last ? one.gradient[i] + kFactor * sum[i] : sum[i] + one.gradient[i];
    loss += one.loss;
  }
  const Step parts = step_of(*in_parts(model), model, batch, kFactor);
  EXPECT_EQ(parts.gradient, sum);
  EXPECT_EQ(parts.loss, loss);
}

TEST(MicroBatches, StatisticsAreTheMeanOfTheParts) {
  const Model model = with_normalization();
  const Batch batch = some_batch(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  const auto part_engine = whole_engine(model, kMicroBatch);
  AlignedArray<float> sum(model.statistics.padded_count()), measured(sum.size());
  for (int part = 0; part < kParts; ++part) {
    part_engine->forward(parameters.data(), part_of(batch, part));
    part_engine->read_statistics(measured.data());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += measured[i];
  }
  const auto engine = in_parts(model);
  engine->forward(parameters.data(), batch);
  for (float& each : measured) each = 77;
  engine->read_statistics(measured.data());
  for (const Segment& segment : model.statistics.segments())
    for (std::size_t i = 0; i < segment.padded_count(); ++i)
      EXPECT_EQ(measured[segment.offset + i], i < segment.element_count ? sum[segment.offset + i] / float{kParts} : 77)
          << segment.name << " " << i;
}

TEST(MicroBatches, SegmentsAreAskedForOnceAndAreCompleteWhenTold) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  const std::vector<float> expected = step_of(*in_parts(model), model, batch, kFactor).gradient;
  const auto engine = in_parts(model);
  std::size_t asked = 0;
  engine->forward(parameters.data(), batch, [&asked](std::size_t first, std::size_t last) {
    EXPECT_EQ(first, asked);
    asked = last;
  });
  EXPECT_EQ(asked, model.segments.size());
  AlignedArray<float> gradient = flat_array(model);
  std::size_t complete_from = model.segments.size();
  engine->backward(kFactor, gradient.data(), [&](std::size_t first, std::size_t last) {
    EXPECT_EQ(last, complete_from);
    complete_from = first;
    const std::size_t begin = model.segments[first].offset;
    EXPECT_TRUE(
        std::equal(expected.begin() + static_cast<std::ptrdiff_t>(begin), expected.end(), gradient.begin() + begin));
  });
  EXPECT_EQ(complete_from, 0u);
}

TEST(MicroBatches, ForwardMayBeCalledAgainAfterTheGateThrew) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const Step expected = step_of(*in_parts(model), model, batch, kFactor);
  const auto engine = in_parts(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  EXPECT_THROW(engine->forward(parameters.data(), batch,
                               [](std::size_t, std::size_t) { throw std::runtime_error("the run is over"); }),
               std::runtime_error);
  const Step again = step_of(*engine, model, batch, kFactor);
  EXPECT_EQ(again.gradient, expected.gradient);
  EXPECT_EQ(again.loss, expected.loss);
}

TEST(MicroBatches, ForwardMayBeCalledAgainAfterTheSinkThrew) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const Step expected = step_of(*in_parts(model), model, batch, kFactor);
  const auto engine = in_parts(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  AlignedArray<float> gradient = flat_array(model);
  engine->forward(parameters.data(), batch);
  EXPECT_THROW(engine->backward(1, gradient.data(),
                                [](std::size_t, std::size_t) { throw std::runtime_error("the order is abandoned"); }),
               std::runtime_error);
  const Step again = step_of(*engine, model, batch, kFactor);
  EXPECT_EQ(again.gradient, expected.gradient);
  EXPECT_EQ(again.loss, expected.loss);
}

TEST(MicroBatches, TakeLessMemoryAndTellOfEachPart) {
  constexpr int kLarge = 32, kSmall = 2;
  const Model model = make_model(ModelKind::kResnet20);
  const std::size_t whole = whole_engine(model, kLarge)->activation_bytes();
  int advanced = 0;
  const auto engine = make_micro_batches(whole_engine(model, kSmall), host(),
                                         {.batch = kLarge, .micro_batch = kSmall, .advanced = [&] { ++advanced; }});
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 3);
  engine->forward(parameters.data(), random_batch(model, kLarge, 1));
  EXPECT_EQ(advanced, kLarge / kSmall);
  std::printf("ResNet-20, batch %d: %.1f MiB at once, %.1f MiB in parts of %d\n", kLarge,
              static_cast<double>(whole) / (1 << 20), static_cast<double>(engine->activation_bytes()) / (1 << 20),
              kSmall);
  EXPECT_LT(engine->activation_bytes(), whole / 3);
}

}  // namespace
}  // namespace tg::engine

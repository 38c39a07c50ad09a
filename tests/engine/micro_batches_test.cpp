// A batch computed in parts is the batch, but for the rounding of its sums.
#include "engine/micro_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/builder.h"
#include "kernels/host_memory_space.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {
namespace {

constexpr int kWholeBatch = 12, kMicroBatch = 4;
constexpr std::uint64_t kMicroSeed = 42, kPosition = 77;
constexpr float kStepFactor = 0.3F;

kernels::MemorySpace& host() {
  static kernels::HostMemorySpace space(*kernels::available().back());
  return space;
}

std::unique_ptr<Engine> whole_engine(const Model& model, int batch = kWholeBatch) {
  return make_cpu_engine(model, {.threads = 1, .batch = batch, .evaluation_batch = 3, .seed = kMicroSeed}).value();
}

std::unique_ptr<Engine> in_parts(const Model& model, int batch = kWholeBatch, int micro_batch = kMicroBatch,
                                 int least = 1) {
  const PartSizes sizes = part_sizes(batch, micro_batch, least);
  return make_micro_batches(whole_engine(model, sizes.each), host(),
                            {.batch = batch, .micro_batch = micro_batch, .least = least},
                            sizes.last > 0 ? whole_engine(model, sizes.last) : nullptr);
}

// A share and the samples of a part.
struct Split {
  int batch, micro_batch, least = 1;
};
constexpr Split kSplits[] = {{kWholeBatch, kMicroBatch}, {5, 2}, {7, 3}, {3, 4}};

std::string text(const Split& split) {
  return std::to_string(split.batch) + " in parts of " + std::to_string(split.micro_batch);
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

Batch some_batch(const Model& model, int count = kWholeBatch) {
  Batch batch = random_batch(model, count, 4);
  batch.first_position = kPosition;
  return batch;
}

// Written without what the engine in parts uses.
std::vector<Batch> parts_of(const Batch& batch, int micro_batch) {
  std::vector<Batch> parts;
  const std::size_t elements = batch.images.size() / static_cast<std::size_t>(batch.count);
  for (int first = 0; first < batch.count; first += micro_batch) {
    Batch& one = parts.emplace_back();
    one.count = std::min(micro_batch, batch.count - first);
    one.first_position = batch.first_position + static_cast<std::uint64_t>(first);
    one.images = AlignedArray<float>(static_cast<std::size_t>(one.count) * elements);
    std::copy_n(batch.images.begin() + static_cast<std::size_t>(first) * elements, one.images.size(),
                one.images.begin());
    one.labels.assign(batch.labels.begin() + first, batch.labels.begin() + first + one.count);
  }
  return parts;
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

TEST(MicroBatches, PartsAreEqualButForAShorterLastOne) {
  const auto expect_sizes = [](int batch, int micro_batch, int each, int last) {
    EXPECT_EQ(part_sizes(batch, micro_batch).each, each) << text({batch, micro_batch});
    EXPECT_EQ(part_sizes(batch, micro_batch).last, last) << text({batch, micro_batch});
  };
  expect_sizes(12, 4, 4, 0);
  expect_sizes(5, 2, 2, 1);
  expect_sizes(7, 3, 3, 1);
  expect_sizes(8, 3, 3, 2);
  expect_sizes(3, 4, 3, 0);
  expect_sizes(3, 3, 3, 0);
  expect_sizes(6, 0, 6, 0);
}

// A share that a death leaves may come out at one sample more than parts of this size.
TEST(MicroBatches, NoPartHasOneSampleWhereABatchNormalizationHasOnePixel) {
  const auto sizes = [](int batch, int micro_batch) {
    const PartSizes parts = part_sizes(batch, micro_batch, 2);
    return std::pair(parts.each, parts.last);
  };
  EXPECT_EQ(sizes(8, 3), std::pair(3, 2));
  EXPECT_EQ(sizes(9, 4), std::pair(3, 0));
  EXPECT_EQ(sizes(5, 4), std::pair(3, 2));
  EXPECT_EQ(sizes(7, 3), std::pair(2, 3));
  EXPECT_EQ(sizes(7, 2), std::pair(2, 3)) << "one sample more than asked";
  EXPECT_EQ(sizes(3, 2), std::pair(3, 0));
  EXPECT_EQ(sizes(5, 1), std::pair(1, 0)) << "it says that it cannot";
  const auto model = [](int pixels) {
    return ModelBuilder("m", {3, 1, pixels}).batch_normalization("bn1", {}).dense("fc", 2, {}).build().value();
  };
  EXPECT_EQ(one_pixel_normalization(model(1)), "bn1");
  EXPECT_EQ(one_pixel_normalization(model(2)), "");
}

TEST(MicroBatches, GiveTheGradientAndLossOfTheWholeBatch) {
  constexpr double kTolerance = 1e-5;  // the same float32 products in another order
  const Model model = with_dropout();
  std::vector<Split> splits(std::begin(kSplits), std::end(kSplits));
  splits.push_back({7, 3, 2});
  for (const Split& split : splits) {
    const Batch batch = some_batch(model, split.batch);
    const Step whole = step_of(*whole_engine(model, split.batch), model, batch, kStepFactor);
    const auto engine = in_parts(model, split.batch, split.micro_batch, split.least);
    for (int repeat = 0; repeat < 2; ++repeat) {  // nothing of a step is left in the next one
      const Step parts = step_of(*engine, model, batch, kStepFactor);
      EXPECT_NEAR(parts.loss / whole.loss, 1, kTolerance) << text(split);
      for (const Segment& segment : model.segments.segments()) {
        double largest = 0;
        for (std::size_t i = 0; i < segment.element_count; ++i)
          largest = std::max(largest, std::abs(double{whole.gradient[segment.offset + i]}));
        EXPECT_GT(largest, 0) << segment.name;
        for (std::size_t i = 0; i < segment.padded_count(); ++i)
          ASSERT_NEAR(parts.gradient[segment.offset + i], whole.gradient[segment.offset + i], kTolerance * largest)
              << text(split) << " " << segment.name << " " << i;
      }
    }
  }
}

// Bit for bit: hence every sample has the mask of its position.
TEST(MicroBatches, AddTheirPartsInOrder) {
  for (const Model& model : {with_dropout(), with_normalization()})
    for (const Split& split : kSplits) {
      const Batch batch = some_batch(model, split.batch);
      const std::vector<Batch> parts = parts_of(batch, split.micro_batch);
      std::vector<float> sum(model.segments.padded_count());
      double loss = 0;
      for (const Batch& part : parts) {
        const bool first = &part == &parts.front(), last = &part == &parts.back();
        const Step one = step_of(*whole_engine(model, part.count), model, part, last ? kStepFactor : 1);
        for (std::size_t i = 0; i < sum.size(); ++i)
          sum[i] = first ? one.gradient[i] : last ? one.gradient[i] + kStepFactor * sum[i] : sum[i] + one.gradient[i];
        loss += one.loss;
      }
      const Step step = step_of(*in_parts(model, split.batch, split.micro_batch), model, batch, kStepFactor);
      EXPECT_EQ(step.gradient, sum) << text(split);
      EXPECT_EQ(step.loss, loss) << text(split);
    }
}

TEST(MicroBatches, StatisticsAreTheMeanOfTheSamplesParts) {
  const Model model = with_normalization();
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  for (const Split& split : kSplits) {
    const Batch batch = some_batch(model, split.batch);
    const std::vector<Batch> parts = parts_of(batch, split.micro_batch);
    const bool equal = parts.front().count == parts.back().count;  // then weights would cost bits
    AlignedArray<float> sum(model.statistics.padded_count()), measured(sum.size());
    for (const Batch& part : parts) {
      const auto part_engine = whole_engine(model, part.count);
      part_engine->forward(parameters.data(), part);
      part_engine->read_statistics(measured.data());
      const float weight = equal ? 1 : static_cast<float>(part.count);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += weight * measured[i];
    }
    const auto weights = static_cast<float>(equal ? static_cast<int>(parts.size()) : split.batch);
    const auto engine = in_parts(model, split.batch, split.micro_batch);
    engine->forward(parameters.data(), batch);
    for (float& each : measured) each = 77;
    engine->read_statistics(measured.data());
    for (const Segment& segment : model.statistics.segments())
      for (std::size_t i = 0; i < segment.padded_count(); ++i)
        EXPECT_EQ(measured[segment.offset + i], i < segment.element_count ? sum[segment.offset + i] / weights : 77)
            << text(split) << " " << segment.name << " " << i;
  }
}

// An engine whose texts depend on the batch, as those of a device do.
class Told final : public Engine {
 public:
  Told(std::unique_ptr<Engine> engine, std::string build, std::string choices)
      : engine_(std::move(engine)), build_(std::move(build)), choices_(std::move(choices)) {}
  const SegmentTable& segments() const override { return engine_->segments(); }
  const SegmentTable& statistics() const override { return engine_->statistics(); }
  double forward(const float*, const Batch&, const SegmentGate&) override { return 0; }
  void backward(float, float*, const SegmentSink&) override {}
  void read_statistics(float*) const override {}
  EvaluationCounts evaluate(const float*, const float*, const Batch& batch, std::span<float>) override {
    return {static_cast<std::uint64_t>(batch.count), static_cast<std::uint64_t>(batch.count)};
  }
  std::string build() const override { return build_; }
  std::string choices() const override { return choices_; }
  std::size_t activation_bytes() const override { return 1000; }

 private:
  const std::unique_ptr<Engine> engine_;
  const std::string build_, choices_;
};

TEST(MicroBatches, DescribeBothEngines) {
  const Model model = with_dropout();
  const auto told = [&](const char* build, const char* choices) {
    return make_micro_batches(
        std::make_unique<Told>(whole_engine(model, 2), "cuDNN 9, a GPU, choices 12", "fc1: 1\nfc2: 2"), host(),
        {.batch = 3, .micro_batch = 2}, std::make_unique<Told>(whole_engine(model, 1), build, choices));
  };
  const auto other = told("cuDNN 9, a GPU, choices 1", "fc1: 1\nfc2: 3");
  EXPECT_EQ(other->build(), "cuDNN 9, a GPU, choices 12; last part: choices 1");
  EXPECT_EQ(other->choices(), "fc1: 1\nfc2: 2\nlast part, fc1: 1\nlast part, fc2: 3");
  EXPECT_EQ(other->activation_bytes(), 2000 + model.segments.padded_count() * sizeof(float));
  EXPECT_EQ(micro_batch_bytes(model, 3, 2), model.segments.padded_count() * sizeof(float));
  EXPECT_EQ(micro_batch_bytes(model, 5, 2), 2 * model.segments.padded_count() * sizeof(float));
  EXPECT_EQ(micro_batch_bytes(model, 2, 3), 0u);
  const auto same = told("cuDNN 9, a GPU, choices 12", "fc1: 1\nfc2: 2");
  EXPECT_EQ(same->build(), "cuDNN 9, a GPU, choices 12");
  EXPECT_EQ(same->choices(), "fc1: 1\nfc2: 2");
}

void expect_asked_once(const Split& split) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model, split.batch);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  const std::vector<float> expected =
      step_of(*in_parts(model, split.batch, split.micro_batch), model, batch, kStepFactor).gradient;
  const auto engine = in_parts(model, split.batch, split.micro_batch);
  std::size_t asked = 0;
  engine->forward(parameters.data(), batch, [&asked](std::size_t first, std::size_t last) {
    EXPECT_EQ(first, asked);
    asked = last;
  });
  EXPECT_EQ(asked, model.segments.size());
  AlignedArray<float> gradient = flat_array(model);
  std::size_t complete_from = model.segments.size();
  engine->backward(kStepFactor, gradient.data(), [&](std::size_t first, std::size_t last) {
    EXPECT_EQ(last, complete_from);
    complete_from = first;
    const std::size_t begin = model.segments[first].offset;
    EXPECT_TRUE(
        std::equal(expected.begin() + static_cast<std::ptrdiff_t>(begin), expected.end(), gradient.begin() + begin));
  });
  EXPECT_EQ(complete_from, 0u);
}

TEST(MicroBatches, SegmentsAreRequestedOnceAndReportedComplete) {
  for (const Split& split : kSplits) expect_asked_once(split);
}

TEST(MicroBatches, ForwardMayBeCalledAgainAfterTheGateThrew) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const Step expected = step_of(*in_parts(model), model, batch, kStepFactor);
  const auto engine = in_parts(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  EXPECT_THROW(engine->forward(parameters.data(), batch,
                               [](std::size_t, std::size_t) { throw std::runtime_error("the run is over"); }),
               std::runtime_error);
  const Step again = step_of(*engine, model, batch, kStepFactor);
  EXPECT_EQ(again.gradient, expected.gradient);
  EXPECT_EQ(again.loss, expected.loss);
}

TEST(MicroBatches, ForwardMayBeCalledAgainAfterTheSinkThrew) {
  const Model model = with_dropout();
  const Batch batch = some_batch(model);
  const Step expected = step_of(*in_parts(model), model, batch, kStepFactor);
  const auto engine = in_parts(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 3);
  AlignedArray<float> gradient = flat_array(model);
  engine->forward(parameters.data(), batch);
  EXPECT_THROW(engine->backward(1, gradient.data(),
                                [](std::size_t, std::size_t) { throw std::runtime_error("the order is abandoned"); }),
               std::runtime_error);
  const Step again = step_of(*engine, model, batch, kStepFactor);
  EXPECT_EQ(again.gradient, expected.gradient);
  EXPECT_EQ(again.loss, expected.loss);
}

TEST(MicroBatches, TakeLessMemoryAndReportEachPart) {
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

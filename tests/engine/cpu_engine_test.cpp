// What engine/engine.h promises beyond the numbers: repeatable bits, the order of the sink, padding left alone,
// short evaluation batches, errors as values.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {
namespace {

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

void ignore(std::size_t, std::size_t) {}

bool same_bits(const AlignedArray<float>& a, const AlignedArray<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Run {
  ModelKind model;
  int threads, batch;
};

void PrintTo(const Run& value, std::ostream* out) {
  *out << to_word(value.model) << " with " << value.threads << " threads, batch " << value.batch;
}

class CpuEngine : public testing::TestWithParam<Run> {
 protected:
  std::unique_ptr<Engine> make(int evaluation_batch = 4) const {
    auto engine = make_cpu_engine(
        model_, {.threads = GetParam().threads, .batch = GetParam().batch, .evaluation_batch = evaluation_batch});
    return std::move(engine).value();
  }

  const Model model_ = make_model(GetParam().model);
  const Batch batch_ = random_batch(model_, GetParam().batch, 51);
  const AlignedArray<float> parameters_ = random_parameters(model_, 0.05F, 52);
};

TEST_P(CpuEngine, RepeatsBitForBit) {
  AlignedArray<float> first = flat_array(model_), again = flat_array(model_), other_engine = flat_array(model_);
  const auto engine = make();
  const double loss = engine->forward(parameters_.data(), batch_);
  engine->backward(1.0F, first.data(), ignore);
  engine->evaluate(parameters_.data(), random_batch(model_, 4, 53));
  EXPECT_EQ(engine->forward(parameters_.data(), batch_), loss);
  engine->backward(1.0F, again.data(), ignore);
  EXPECT_TRUE(same_bits(first, again));

  const auto other = make();
  EXPECT_EQ(other->forward(parameters_.data(), batch_), loss);
  other->backward(1.0F, other_engine.data(), ignore);
  EXPECT_TRUE(same_bits(first, other_engine));
}

// oneDNN's first choice for such a layer gives other gradients from time to time.
TEST(CpuEngineOnThreads, StridedWindowsOfOnePixelRepeat) {
  for (const int channels : {3, 5, 6, 8, 12}) {
    SCOPED_TRACE(channels);
    const Model model = ModelBuilder("strided", {channels, 8, 6})
                            .convolution("conv1", {.count = channels, .kernel = 3, .bias = false}, {})
                            .convolution("downsample", {.count = 6, .stride = 2, .bias = false}, {})
                            .dense("fc", 4, {})
                            .build()
                            .value();
    const auto engine = make_cpu_engine(model, {.threads = 2, .batch = 3, .evaluation_batch = 1}).value();
    const Batch batch = random_batch(model, 3, 51);
    const AlignedArray<float> parameters = random_parameters(model, 0.5F, 52);
    AlignedArray<float> first = flat_array(model), again = flat_array(model);
    engine->forward(parameters.data(), batch);
    engine->backward(1.0F, first.data(), ignore);
    for (int repeat = 0; repeat < 200; ++repeat) {
      engine->forward(parameters.data(), batch);
      engine->backward(1.0F, again.data(), ignore);
      ASSERT_TRUE(same_bits(first, again)) << repeat;
    }
  }
}

TEST_P(CpuEngine, ParametersMayMoveBetweenSteps) {
  AlignedArray<float> first = flat_array(model_), second = flat_array(model_), moved = flat_array(model_);
  std::copy(parameters_.begin(), parameters_.end(), moved.begin());
  const auto engine = make();
  const double loss = engine->forward(parameters_.data(), batch_);
  engine->backward(1.0F, first.data(), ignore);
  EXPECT_EQ(engine->forward(moved.data(), batch_), loss);
  engine->backward(1.0F, second.data(), ignore);
  EXPECT_TRUE(same_bits(first, second));
}

TEST_P(CpuEngine, SinkSeesEachLayerOnceCompleteAndLastFirst) {
  const float kUnset = std::numeric_limits<float>::quiet_NaN();
  AlignedArray<float> gradient = flat_array(model_), at_sink = flat_array(model_);
  for (float& each : gradient) each = kUnset;
  const SegmentTable& segments = model_.segments;
  for (const Segment& segment : segments.segments()) {  // padding: a value that must survive
    for (std::size_t i = segment.element_count; i < segment.padded_count(); ++i) gradient[segment.offset + i] = 7;
  }
  Ranges seen;
  const auto engine = make();
  engine->forward(parameters_.data(), batch_);
  engine->backward(1.0F, gradient.data(), [&](std::size_t first, std::size_t last) {
    seen.emplace_back(first, last);
    const std::size_t begin = segments[first].offset;
    const std::size_t end = segments[last - 1].offset + segments[last - 1].padded_count();
    std::copy(gradient.begin() + begin, gradient.begin() + end, at_sink.begin() + begin);
  });
  Ranges expected;
  for (std::size_t last = segments.size(); last > 0; last -= 2) expected.emplace_back(last - 2, last);
  EXPECT_EQ(seen, expected);
  EXPECT_TRUE(same_bits(gradient, at_sink)) << "a gradient changed after it was reported to the sink";
  for (const Segment& segment : segments.segments()) {
    for (std::size_t i = 0; i < segment.padded_count(); ++i) {
      const float value = gradient[segment.offset + i];
      if (i < segment.element_count) {
        ASSERT_FALSE(std::isnan(value)) << segment.name << ' ' << i;
      } else {
        ASSERT_EQ(value, 7) << segment.name << ' ' << i;
      }
    }
  }
}

TEST_P(CpuEngine, ForwardMayBeCalledAgainAfterTheSinkThrew) {
  AlignedArray<float> expected = flat_array(model_), gradient = flat_array(model_);
  const auto engine = make();
  const double loss = make()->forward(parameters_.data(), batch_);
  const auto fresh = make();
  fresh->forward(parameters_.data(), batch_);
  std::size_t parts = 0;
  fresh->backward(1.0F, expected.data(), [&](std::size_t, std::size_t) { ++parts; });
  for (std::size_t at = 0; at < parts; ++at) {
    engine->forward(parameters_.data(), batch_);
    std::size_t told = 0;
    EXPECT_THROW(engine->backward(1.0F, gradient.data(),
                                  [&](std::size_t, std::size_t) {
                                    if (told++ == at) throw std::runtime_error("the order is abandoned");
                                  }),
                 std::runtime_error);
    EXPECT_EQ(engine->forward(parameters_.data(), batch_), loss);
    engine->backward(1.0F, gradient.data(), ignore);
    EXPECT_TRUE(same_bits(gradient, expected)) << at;
  }
}

TEST_P(CpuEngine, FactorScalesTheGradient) {
  AlignedArray<float> one = flat_array(model_), four = flat_array(model_);
  const auto engine = make();
  engine->forward(parameters_.data(), batch_);
  engine->backward(1.0F, one.data(), ignore);
  engine->forward(parameters_.data(), batch_);
  engine->backward(4.0F, four.data(), ignore);
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_FLOAT_EQ(four[i], 4.0F * one[i]) << i;  // a power of two: exact
}

TEST_P(CpuEngine, ShortEvaluationBatchesCountOnlyTheirSamples) {
  const double kTolerance = 1e-5;  // float32 logits whose sums may be ordered otherwise in another batch size
  const int kSamples = 7;
  const Batch all = random_batch(model_, kSamples, 54);
  const auto engine = make(kSamples);
  const auto classes = static_cast<std::size_t>(model_.classes);
  std::vector<float> logits(kSamples * classes);
  const EvaluationCounts whole = engine->evaluate(parameters_.data(), nullptr, all, logits);
  EXPECT_EQ(whole.total, static_cast<std::uint64_t>(kSamples));
  std::uint64_t correct = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * classes);
    if (std::max_element(row, row + model_.classes) - row == all.labels[i]) ++correct;
  }
  EXPECT_EQ(correct, whole.correct) << "the logits are those that were counted";

  EvaluationCounts parts;
  for (int first = 0; first < kSamples; first += 3) {
    Batch part;
    part.count = std::min(3, kSamples - first);
    part.images = AlignedArray<float>(part.count * model_.input.elements());
    std::copy_n(all.images.begin() + first * model_.input.elements(), part.images.size(), part.images.begin());
    part.labels.assign(all.labels.begin() + first, all.labels.begin() + first + part.count);
    parts += engine->evaluate(parameters_.data(), part);
  }
  EXPECT_EQ(parts.total, whole.total);
  EXPECT_EQ(parts.correct, whole.correct);
  EXPECT_NEAR(parts.loss_sum, whole.loss_sum, kTolerance * whole.loss_sum);
  EXPECT_EQ(engine->evaluate(parameters_.data(), Batch{}).total, 0u);
}

TEST_P(CpuEngine, EvaluationAgreesWithTraining) {
  const double kTolerance = 1e-5;  // as above: other primitives, other order of sums
  const auto engine = make(GetParam().batch);
  const double loss = engine->forward(parameters_.data(), batch_);
  EXPECT_NEAR(engine->evaluate(parameters_.data(), batch_).loss_sum, loss, kTolerance * loss);
}

INSTANTIATE_TEST_SUITE_P(Models, CpuEngine,
                         testing::Values(Run{ModelKind::kLenet, 1, 16}, Run{ModelKind::kLenet, 2, 21},
                                         Run{ModelKind::kCifarnet, 1, 8}, Run{ModelKind::kCifarnet, 2, 9}),
                         [](const testing::TestParamInfo<Run>& each) {
                           return to_word(each.param.model) + ("_" + std::to_string(each.param.threads));
                         });

TEST(CpuEngineErrors, AreValues) {
  const Model model = make_model(ModelKind::kLenet);
  for (const EngineOptions& options : {EngineOptions{0, 1, 1}, EngineOptions{1, 0, 1}, EngineOptions{1, 1, 0}}) {
    const auto engine = make_cpu_engine(model, options);
    ASSERT_FALSE(engine.ok());
    EXPECT_EQ(engine.error().kind, ErrorKind::kInvalidJob);
  }
}

TEST(CpuEngineBuild, NamesLibraryAndThreads) {
  const auto engine = make_cpu_engine(make_model(ModelKind::kLenet), {.threads = 2, .batch = 2, .evaluation_batch = 1});
  ASSERT_TRUE(engine.ok());
  EXPECT_EQ((*engine)->build().rfind("oneDNN ", 0), 0u) << (*engine)->build();
  EXPECT_NE((*engine)->build().find("2 threads"), std::string::npos);
}

}  // namespace
}  // namespace tg::engine

// The plan of a network's stages and memory: what is fused, what lives how long, that nothing alive is overwritten, and
// that sharing memory changes no bit.
#include "engine/graph/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include "engine/cpu/arena.h"
#include "engine/cpu/cpu_engine.h"
#include "engine/models/builder.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/small_networks.h"

namespace tg::engine::cpu {
namespace {

// "conv1+relu(mask left)", "max pooling 3(mask)", in the order of the stages.
std::vector<std::string> described(const Model& model, const Plan& plan) {
  std::vector<std::string> all;
  for (const StagePlan& stage : plan.stages)
    all.push_back(model.operators[stage.op].name + (stage.relu ? "+relu" : "") + (stage.mask_left ? "(left)" : "") +
                  (stage.mask_taken ? "(taken)" : "") + (stage.view ? "(view)" : ""));
  return all;
}

using Texts = std::vector<std::string>;

TEST(Plan, FrozenLayersBelowHaveNoBackward) {
  const auto wanted = [](std::vector<std::string> freeze) {
    const Model model = make_model({.kind = ModelKind::kLenet, .freeze = std::move(freeze)}).value();
    const Plan plan = make_plan(model, {.training = true});
    Texts names;
    for (const StagePlan& stage : plan.stages)
      if (plan.gradient_buffers[stage.output] != kNoBuffer) names.push_back(model.operators[stage.op].name);
    return names;
  };
  EXPECT_EQ(wanted({}).size(), 7u);
  EXPECT_EQ(wanted({"conv1"}), (Texts{"conv2", "max pooling 6", "flatten 7", "fc1", "fc2"}));
  EXPECT_EQ(wanted({"conv", "fc1"}), (Texts{"fc2"}));
  EXPECT_EQ(wanted({"fc"}), wanted({})) << "its gradient goes on to the layers before it";
}

struct FrozenStep {
  double loss = 0;
  std::vector<float> gradient, measured;
};

FrozenStep step_of(Model model, const std::function<bool(std::size_t)>& frozen) {
  std::vector<Segment> segments = model.segments.segments();
  for (std::size_t s = 0; s < segments.size(); ++s) segments[s].frozen = frozen(s);
  model.segments = SegmentTable(std::move(segments));
  CpuEngine engine(model, {.threads = 1, .batch = 3, .evaluation_batch = 1, .seed = 5});
  AlignedArray<float> gradient = flat_array(model), measured(model.statistics.padded_count());
  const auto parameters = random_parameters(model, 0.5F, 12);  // the engine reads them until its backward is over
  FrozenStep step{engine.forward(parameters.data(), random_batch(model, 3, 11), {}), {}, {}};
  engine.read_statistics(measured.data());
  std::size_t told_from = model.segments.size();
  engine.backward(1.5F, gradient.data(),
                  [&](std::size_t first, std::size_t last) { EXPECT_EQ(last, std::exchange(told_from, first)); });
  EXPECT_EQ(told_from, 0u);
  step.gradient.assign(gradient.begin(), gradient.end());
  step.measured.assign(measured.begin(), measured.end());
  return step;
}

// What is trained has the gradient that it has when everything is.
TEST(FrozenSegments, ChangeNoOthersGradient) {
  for (const SmallNetwork& network : small_networks()) {
    const Model model = network.model().value();
    const FrozenStep whole = step_of(model, [](std::size_t) { return false; });
    for (std::size_t cut = 0; cut < model.segments.size(); ++cut)
      for (const auto& frozen : std::initializer_list<std::function<bool(std::size_t)>>{
               [&](std::size_t s) { return s < cut; }, [&](std::size_t s) { return s > cut; },
               [&](std::size_t s) { return s != cut; }}) {
        SCOPED_TRACE(network.name + std::string(", cut at ") + std::to_string(cut));
        const FrozenStep part = step_of(model, frozen);
        EXPECT_EQ(part.loss, whole.loss);
        EXPECT_EQ(part.measured, whole.measured);
        for (std::size_t s = 0; s < model.segments.size(); ++s)
          for (std::size_t i = 0; i < model.segments[s].element_count && !frozen(s); ++i)
            ASSERT_EQ(part.gradient[model.segments[s].offset + i], whole.gradient[model.segments[s].offset + i]) << s;
      }
  }
}

// The fusions that LeNet's and CifarNet's bits rest on.
TEST(Plan, FusesReluAndLeavesItsMaskToThePoolingBehind) {
  const Model lenet = make_model(ModelKind::kLenet);
  EXPECT_EQ(described(lenet, make_plan(lenet, {.training = true})),
            (Texts{"conv1+relu(left)", "max pooling 3(taken)", "conv2+relu(left)", "max pooling 6(taken)", "flatten 7",
                   "fc1+relu", "fc2"}));
  const Model cifarnet = make_model(ModelKind::kCifarnet);
  EXPECT_EQ(described(cifarnet, make_plan(cifarnet, {.training = true})),
            (Texts{"conv1+relu(left)", "max pooling 3(taken)", "normalization 4", "conv2+relu", "normalization 7",
                   "max pooling 8", "flatten 9", "fc1+relu", "fc2+relu", "fc3"}));
}

TEST(Plan, AReluThatIsNotTheOnlyReaderIsNotFused) {
  ModelBuilder builder("m", {3, 6, 6});
  const std::size_t raw = builder.convolution("conv1", {4, 3}, {}).place();
  const std::size_t positive = builder.relu().place();
  const Model model = builder.concat({raw, positive}).dense("fc", 2, {}).build().value();
  const Plan plan = make_plan(model, {.training = true});
  EXPECT_EQ(described(model, plan), (Texts{"conv1", "relu 2", "concat 3", "flatten 4", "fc"}));
  EXPECT_NE(plan.value_buffers[raw], plan.value_buffers[positive]);
}

TEST(Plan, EvaluationLeavesOutAuxiliaryHeadsAndDropout) {
  const Model model = make_model({.kind = ModelKind::kGooglenet, .input = ImageShape{3, 64, 64}}).value();
  const Plan training = make_plan(model, {.training = true}), evaluation = make_plan(model, {.training = false});
  EXPECT_EQ(training.heads.size(), 3u);
  EXPECT_FALSE(training.heads.back().loss.auxiliary);
  ASSERT_EQ(evaluation.heads.size(), 1u);
  EXPECT_FALSE(evaluation.heads.front().loss.auxiliary);
  for (const std::string& each : described(model, evaluation)) {
    EXPECT_EQ(each.find("aux"), std::string::npos) << each;
    const bool dropout = each.find("dropout") != std::string::npos;
    EXPECT_EQ(each.find("(view)") != std::string::npos, dropout) << each;
  }
}

TEST(Plan, AResidualSumOverwritesAnUnusedInput) {
  const Model model = make_model(ModelKind::kResnet20);
  const Plan plan = make_plan(model, {.training = true});
  for (const StagePlan& stage : plan.stages) {
    if (!std::holds_alternative<Add>(model.operators[stage.op].attributes)) continue;
    EXPECT_TRUE(stage.relu);
    // The batch normalization before it keeps its input, not its output.
    EXPECT_EQ(plan.value_buffers[stage.output], plan.value_buffers[stage.inputs[0]]);
    EXPECT_EQ(plan.gradient_buffers[stage.output], plan.gradient_buffers[stage.inputs[0]]);
    EXPECT_NE(plan.gradient_buffers[stage.output], plan.gradient_buffers[stage.inputs[1]]);
  }
}

std::vector<BufferNeed> random_needs(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<BufferNeed> needs;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = random() % 40;
    needs.push_back({{first, first + random() % 20}, random() % 5 == 0 ? 0 : random() % 5000});
  }
  return needs;
}

TEST(Arena, NoTwoBuffersOfOneTimeMeet) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::vector<BufferNeed> needs = random_needs(1 + seed * 3, seed);
    const Placement placement = place(needs), apart = place_apart(needs);
    EXPECT_LE(placement.bytes, apart.bytes);
    EXPECT_GE(placement.bytes, most_bytes_at_once(needs));
    for (std::size_t a = 0; a < needs.size(); ++a) {
      EXPECT_EQ(placement.offsets[a] % kCacheLine, 0u);
      EXPECT_LE(placement.offsets[a] + needs[a].bytes, placement.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        if (needs[a].bytes == 0 || needs[b].bytes == 0) continue;
        const auto meet = [&](const Placement& where) {
          return where.offsets[a] < where.offsets[b] + needs[b].bytes &&
                 where.offsets[b] < where.offsets[a] + needs[a].bytes;
        };
        EXPECT_FALSE(meet(apart)) << a << ' ' << b;
        EXPECT_FALSE(needs[a].lifetime.overlaps(needs[b].lifetime) && meet(placement)) << a << ' ' << b;
      }
    }
  }
}

struct Results {
  double loss = 0;
  EvaluationCounts evaluation;
  std::vector<float> gradient, measured;
};

Results results_of(const Model& model, CpuEngine& engine, int batch_size) {
  Batch batch = random_batch(model, batch_size, 61);
  batch.first_position = 1000;
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 62);
  AlignedArray<float> gradient = flat_array(model);
  AlignedArray<float> running(model.statistics.padded_count()), measured(model.statistics.padded_count());
  initialize(model.statistics, 62, running.data());
  Results results;
  results.evaluation = engine.evaluate(parameters.data(), running.data(), batch);
  results.loss = engine.forward(parameters.data(), batch);
  engine.read_statistics(measured.data());
  engine.backward(1.0F, gradient.data(), [](std::size_t, std::size_t) {});
  results.gradient.assign(gradient.begin(), gradient.end());
  results.measured.assign(measured.begin(), measured.end());
  return results;
}

class SharedMemory : public testing::TestWithParam<ModelKind> {};

TEST_P(SharedMemory, ChangesNoBit) {
  const int kBatch = 3;
  const ModelKind kind = GetParam();
  const bool own = kind == ModelKind::kLenet || kind == ModelKind::kCifarnet || kind == ModelKind::kMlp;
  const Model model =
      own ? make_model(kind) : make_model({.kind = kind, .input = ImageShape{3, 64, 72}, .classes = 11}).value();
  const EngineOptions options{.threads = 2, .batch = kBatch, .evaluation_batch = kBatch, .seed = 9};
  CpuEngine shared(model, options), apart(model, options, false);
  const Results a = results_of(model, shared, kBatch), b = results_of(model, apart, kBatch);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.evaluation.loss_sum, b.evaluation.loss_sum);
  EXPECT_TRUE(std::isfinite(a.loss)) << a.loss;
  EXPECT_EQ(a.measured, b.measured);
  EXPECT_EQ(std::memcmp(a.gradient.data(), b.gradient.data(), a.gradient.size() * sizeof(float)), 0);
  const Results again = results_of(model, shared, kBatch);  // nothing is left over from step to step
  EXPECT_EQ(a.loss, again.loss);
  EXPECT_EQ(std::memcmp(a.gradient.data(), again.gradient.data(), a.gradient.size() * sizeof(float)), 0);

  const std::size_t planned = shared.training().bytes(), least = shared.training().least_bytes();
  EXPECT_GE(planned, least);
  EXPECT_LE(planned, least + least / 10 + 4096);
  EXPECT_LT(planned, apart.training().bytes());
  EXPECT_LE(shared.evaluation().bytes(), planned);
  EXPECT_GE(shared.activation_bytes(), planned);
  std::printf("%s: %.2f MiB in training, %.2f at least, %.2f without sharing; %.2f in evaluation\n", to_word(kind),
              planned / 1048576.0, least / 1048576.0, apart.training().bytes() / 1048576.0,
              shared.evaluation().bytes() / 1048576.0);
}

// What would not fit is evaluated in pieces, and counts the same.
TEST(Evaluation, SplitsLargeImagesIntoPieces) {
  const Model model = ModelBuilder("wide", {1, 256, 256})
                          .convolution("conv1", {512, 1}, {})
                          .adaptive_average(1, 1)
                          .dense("fc", 5, {})
                          .build()
                          .value();
  const int kSamples = 5;
  CpuEngine engine(model, {.threads = 2, .batch = 1, .evaluation_batch = kSamples});
  EXPECT_EQ(engine.evaluation().batch(), 1);  // 2 x 128 MiB would leave nothing for the images
  const AlignedArray<float> parameters = random_parameters(model, 0.5F, 1);
  const Batch all = random_batch(model, kSamples, 2);
  const EvaluationCounts whole = engine.evaluate(parameters.data(), all);
  EvaluationCounts sum;
  for (int i = 0; i < kSamples; ++i) {
    Batch one;
    one.count = 1;
    one.images = AlignedArray<float>(model.input.elements());
    std::copy_n(all.images.begin() + static_cast<std::size_t>(i) * one.images.size(), one.images.size(),
                one.images.begin());
    one.labels = {all.labels[static_cast<std::size_t>(i)]};
    sum += engine.evaluate(parameters.data(), one);
  }
  EXPECT_EQ(whole.total, 5u);
  EXPECT_EQ(whole.correct, sum.correct);
  EXPECT_EQ(whole.loss_sum, sum.loss_sum);
}

// Every operator in every surrounding that the models have; the others are of the same families, and only larger.
INSTANTIATE_TEST_SUITE_P(Models, SharedMemory,
                         testing::Values(ModelKind::kLenet, ModelKind::kCifarnet, ModelKind::kMlp, ModelKind::kResnet20,
                                         ModelKind::kGooglenet, ModelKind::kAlexnetTwoColumn),
                         [](const testing::TestParamInfo<ModelKind>& each) {
                           std::string name = to_word(each.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tg::engine::cpu

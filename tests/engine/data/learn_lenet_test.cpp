// The synthetic set must be easy enough for a short run: LeNet in float on one thread passes 98 % within 400 steps of
// 64, the whole path from drawn digits through the CPU engine and the update kernels to counts of right answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "engine/dataset.h"
#include "engine/engine.h"
#include "kernels/kernels.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TG_SLOWED_BY_SANITIZER 1
#else
#define TG_SLOWED_BY_SANITIZER 0
#endif

namespace tg::engine {
namespace {

constexpr int kTrainingBatch = 64, kEvaluationBatch = 250;
constexpr std::uint64_t kLenetSteps = 400, kLenetSeed = 1;
constexpr double kMinAccuracy = 0.98;  // 99 % is usual

// Parameters and momentum, double-buffered as a run keeps them.
struct State {
  explicit State(std::size_t count) : parameters(count), momentum(count) {}
  AlignedArray<float> parameters, momentum;
  kernels::ConstStateSpan source() const { return {parameters.span(), momentum.span(), {}}; }
  kernels::StateSpan target() { return {parameters.span(), momentum.span(), {}}; }
};

double accuracy_of(Engine& engine, const Dataset& data, const Recipe& recipe, const float* parameters) {
  EvaluationCounts counts;
  Batch batch;
  for (std::size_t first = 0; first < data.test.count(); first += static_cast<std::size_t>(batch.count)) {
    batch.count = static_cast<int>(std::min<std::size_t>(kEvaluationBatch, data.test.count() - first));
    fill_evaluation_batch(data, recipe, first, batch);
    counts += engine.evaluate(parameters, batch);
  }
  EXPECT_EQ(counts.total, data.test.count());
  return static_cast<double>(counts.correct) / static_cast<double>(counts.total);
}

TEST(Learn, LenetPasses98Percent) {
  if (TG_SLOWED_BY_SANITIZER) GTEST_SKIP() << "400 training steps take minutes under a sanitizer";
  const Model model = make_model(ModelKind::kLenet);
  DatasetOptions dataset_options;
  dataset_options.kind = DatasetKind::kSynthetic;
  const auto data = load_dataset(dataset_options);
  ASSERT_TRUE(data.ok());
  ASSERT_TRUE(check_labels(**data, model.classes).ok());
  const Recipe recipe = make_recipe(**data, model.input).value();
  EngineOptions engine_options;
  engine_options.batch = kTrainingBatch;
  engine_options.evaluation_batch = kEvaluationBatch;
  auto made = make_cpu_engine(model, engine_options);
  ASSERT_TRUE(made.ok()) << made.error().message;
  Engine& engine = **made;

  const std::size_t count = model.segments.padded_count();
  State states[2] = {State(count), State(count)};
  AlignedArray<float> gradients(count);
  initialize(model.segments, kLenetSeed, states[0].parameters.data());
  const auto kernels = kernels::select("auto");
  ASSERT_TRUE(kernels.ok());
  kernels::Update update;
  update.kind = OptimizerKind::kMomentum;
  update.rate = 0.01f;
  update.scale = 1;
  update.momentum = 0.9f;
  update.weight_decay = 5e-4f;

  BatchSource::Options source_options;
  source_options.seed = kLenetSeed;
  source_options.global_batch = kTrainingBatch;
  source_options.share = {0, static_cast<int>(kTrainingBatch)};
  source_options.last_step = kLenetSteps;
  source_options.recipe = recipe;
  BatchSource source(*data, source_options);
  for (std::uint64_t k = 0; k < kLenetSteps; ++k) {
    const State& from = states[k % 2];
    engine.forward(from.parameters.data(), source.next());
    engine.backward(1.0f / kTrainingBatch, gradients.data(), [](std::size_t, std::size_t) {});
    (*kernels)->apply_floats(update, gradients.span(), from.source(), states[(k + 1) % 2].target());
  }
  const double accuracy = accuracy_of(engine, **data, recipe, states[kLenetSteps % 2].parameters.data());
  std::printf("LeNet, float: %.2f %% after %d steps\n", 100 * accuracy, static_cast<int>(kLenetSteps));
  EXPECT_GE(accuracy, kMinAccuracy);
}

}  // namespace
}  // namespace tg::engine

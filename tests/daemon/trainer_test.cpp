// The compute thread with an engine that lives where the gradient and the state do: nothing is computed elsewhere.
#include "daemon/step/threads/trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <semaphore>
#include <variant>
#include <vector>

#include "daemon/step/job_layout.h"
#include "tests/simulation/simulator/awkward_home.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_model;
using simulation::tiny_segments;

constexpr std::chrono::seconds kPatience{60};

// Its gradient is a drawn one times the factor, its statistics are drawn too; its loss is the first parameter, in
// evaluation that and the first statistic.
class EngineAtHome final : public engine::Engine {
 public:
  explicit EngineAtHome(kernels::Home& home) : tensors_(home.make_kernels()) {}

  const engine::SegmentTable& segments() const override { return tiny_segments(); }
  const engine::SegmentTable& statistics() const override { return tiny_model().statistics; }
  double forward(const float* parameters, const engine::Batch&, const SegmentGate& gate) override {
    gate(0, tiny_segments().size());
    return first_of(parameters);
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override {
    std::vector<float> values = gradient(factor);
    tensors_->copy_in(std::as_bytes(std::span(values)), {gradients, values.size()});
    for (std::size_t s = tiny_segments().size(); s > 0; --s) sink(s - 1, s);
  }
  void read_statistics(float* measured) const override {
    const engine::SegmentTable& table = tiny_model().statistics;
    engine::spread(table, simulation::draw_statistics(1, 0, 0), {measured, table.padded_count()});
  }
  engine::EvaluationCounts evaluate(const float* parameters, const float* statistics,
                                    const engine::Batch& batch) override {
    return {0, static_cast<std::uint64_t>(batch.count),
            static_cast<double>(first_of(parameters)) + static_cast<double>(statistics[0])};
  }
  std::string build() const override { return "at home"; }
  std::size_t activation_bytes() const override { return 0; }

  static std::vector<float> gradient(float factor) {
    std::vector<float> values(tiny_segments().padded_count());
    simulation::draw_gradient(1, 0, 0, values);
    for (float& value : values) value *= factor;
    return values;
  }

 private:
  float first_of(const float* parameters) {
    float value = 0;
    tensors_->copy_out({parameters, 1}, std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  const std::unique_ptr<kernels::TensorKernels> tensors_;
};

TrainingKit kit_in(kernels::Home& home, const schema::JobSpec& job) {
  const auto prepared = std::make_shared<Prepared>();
  prepared->model = tiny_model();
  engine::Dataset data;  // one sample of one value, for testing
  data.test = {{1, 1, 1}, {}, {0.5F}, nullptr, {0}};
  prepared->recipe.input = data.test.stored;
  prepared->recipe.floats = true;
  prepared->data = std::make_shared<const engine::Dataset>(std::move(data));
  prepared->replica = std::make_shared<Replica>(home, prepared->model, 0, job.seed);
  TrainingKit kit;
  kit.prepared = prepared;
  kit.tensors = home.make_kernels();
  kit.gradients = kernels::HomeArray(home, tiny_segments().padded_count());
  kit.engine = std::make_unique<EngineAtHome>(home);
  return kit;
}

// A compute thread that is prepared, and what it tells.
struct Trained {
  const std::unique_ptr<kernels::Home> home = simulation::home_under_test(*kernels::available().front());
  std::shared_ptr<const Prepared> prepared;
  std::vector<StepEvent> events;
  std::counting_semaphore<> told{0};
  Progress progress;
  Trainer trainer;

  explicit Trained(const schema::JobSpec& job)
      : trainer(
            {job, Rank(0), {1}}, [this, job](const std::function<void()>&) { return kit_in(*home, job); }, progress,
            FaultInjection(), std::make_shared<Timeline>(), hooks()) {
    EXPECT_TRUE(told.try_acquire_for(kPatience));
  }
  Trainer::Hooks hooks() {
    return {[this](Result<std::shared_ptr<const Prepared>> result) {
              prepared = std::move(result).value();
              told.release();
            },
            [this](StepEvent&& event) {
              events.push_back(std::move(event));
              told.release();
            }};
  }
  std::vector<float> copy_of(kernels::ConstFloats array) {
    std::vector<float> values(tiny_segments().padded_count());
    prepared->replica->copy_out(array, 0, values);
    return values;
  }
};

void expect_gradient(schema::WeightDecayPath weight_decay_path) {
  SCOPED_TRACE(to_word(weight_decay_path));
  schema::JobSpec job;
  job.weight_decay = 0.5;
  job.weight_decay_path = weight_decay_path;
  job.bucket_parameters = 1'000;
  Trained run(job);
  const Layout layout = make_layout(tiny_segments(), layout_options(job, 1, {}));
  ASSERT_GT(layout.buckets.size(), 1u);
  run.trainer.train(0, layout, run.prepared->replica->parameters(), false);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) ASSERT_TRUE(run.told.try_acquire_for(kPatience));

  const std::vector<float> parameters = run.copy_of(run.prepared->replica->parameters());
  std::vector<float> expected =
      EngineAtHome::gradient(1.0F / static_cast<float>(schema::resolved_global_batch(job, 1)));
  if (weight_decay_path == schema::WeightDecayPath::kInside)
    for (const engine::Segment& segment : tiny_segments().segments())
      for (std::size_t i = segment.offset; segment.decays && i < segment.offset + segment.element_count; ++i)
        expected[i] = expected[i] + 0.5F * parameters[i];
  EXPECT_EQ(run.copy_of(run.trainer.gradients()), expected);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const auto& ready = std::get<GradientReady>(run.events[b]);
    EXPECT_EQ(ready.bucket, b);
    EXPECT_EQ(ready.loss_sum, static_cast<double>(parameters[0]));
    EXPECT_EQ(ready.statistics, b == 0 ? simulation::draw_statistics(1, 0, 0) : std::vector<float>());
  }
}

TEST(Trainer, AddsTheWeightDecayWhereTheGradientLives) {
  for (const auto path : values_of<schema::WeightDecayPath>()) expect_gradient(path);
}

TEST(Trainer, EvaluatesWithTheAverageAndTheRunningStatistics) {
  Trained run({});
  Replica& replica = *run.prepared->replica;
  replica.commit(0.25F, simulation::draw_statistics(1, 0, 0));
  run.trainer.evaluate(1);
  ASSERT_TRUE(run.told.try_acquire_for(kPatience));
  const auto& evaluated = std::get<Evaluated>(run.events[0]);
  EXPECT_EQ(evaluated.counts.total, 1u);
  EXPECT_EQ(evaluated.counts.loss_sum,
            static_cast<double>(run.copy_of(replica.average())[0]) + static_cast<double>(replica.statistics()[0]));
}

}  // namespace
}  // namespace tg::daemon

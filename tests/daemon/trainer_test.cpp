// The compute thread with an engine that lives where the gradient and the state do: nothing is computed elsewhere.
#include "daemon/step/threads/trainer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <semaphore>

#include "daemon/step/job_layout.h"
#include "tests/simulation/simulator/awkward_home.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_segments;

constexpr std::chrono::seconds kPatience{60};

// Its gradient is a drawn one times the factor; its loss the first parameter.
class EngineAtHome final : public engine::Engine {
 public:
  explicit EngineAtHome(kernels::Home& home) : tensors_(home.make_kernels()) {}

  const engine::SegmentTable& segments() const override { return tiny_segments(); }
  const engine::SegmentTable& statistics() const override { return none_; }
  double forward(const float* parameters, const engine::Batch&, const SegmentGate& gate) override {
    gate(0, tiny_segments().size());
    return first_of(parameters);
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override {
    std::vector<float> values = gradient(factor);
    tensors_->copy_in(std::as_bytes(std::span(values)), {gradients, values.size()});
    for (std::size_t s = tiny_segments().size(); s > 0; --s) sink(s - 1, s);
  }
  void read_statistics(float*) const override {}
  engine::EvaluationCounts evaluate(const float* parameters, const float*, const engine::Batch& batch) override {
    return {0, static_cast<std::uint64_t>(batch.count), static_cast<double>(first_of(parameters))};
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
  const engine::SegmentTable none_;
};

TrainingKit kit_in(kernels::Home& home, const schema::JobSpec& job) {
  const auto prepared = std::make_shared<Prepared>();
  prepared->model.segments = tiny_segments();
  prepared->data = std::make_shared<const engine::Dataset>();
  prepared->replica = std::make_shared<Replica>(home, tiny_segments(), 0, job.seed);
  TrainingKit kit;
  kit.prepared = prepared;
  kit.tensors = home.make_kernels();
  kit.gradients = kernels::HomeArray(home, tiny_segments().padded_count());
  kit.engine = std::make_unique<EngineAtHome>(home);
  return kit;
}

void expect_gradient(schema::WeightDecayPath weight_decay_path) {
  SCOPED_TRACE(to_word(weight_decay_path));
  schema::JobSpec job;
  job.weight_decay = 0.5;
  job.weight_decay_path = weight_decay_path;
  const auto home = simulation::home_under_test(*kernels::available().front());
  std::shared_ptr<const Prepared> prepared;
  std::counting_semaphore<> told{0};
  double loss = 0;
  Progress progress;
  Trainer::Hooks hooks;
  hooks.prepared = [&](Result<std::shared_ptr<const Prepared>> result) {
    prepared = std::move(result).value();
    told.release();
  };
  hooks.happened = [&](const StepEvent& event) {
    const auto* ready = std::get_if<GradientReady>(&event);
    ASSERT_NE(ready, nullptr) << "nothing else is asked for";
    loss = ready->loss_sum;
    told.release();
  };
  const Trainer::Prepare prepare = [&](const std::function<void()>&) { return kit_in(*home, job); };
  Trainer trainer({job, Rank(0), {1}}, prepare, progress, FaultInjection(), std::make_shared<Timeline>(), hooks);
  ASSERT_TRUE(told.try_acquire_for(kPatience));
  const Layout layout = make_layout(tiny_segments(), layout_options(job, 1, {}));
  trainer.train(0, layout, prepared->replica->parameters(), false);
  for (std::size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) ASSERT_TRUE(told.try_acquire_for(kPatience));

  std::vector<float> parameters(tiny_segments().padded_count()), found(parameters.size());
  prepared->replica->copy_out(prepared->replica->parameters(), 0, parameters);
  prepared->replica->copy_out(trainer.gradients(), 0, found);
  std::vector<float> expected =
      EngineAtHome::gradient(1.0F / static_cast<float>(schema::resolved_global_batch(job, 1)));
  if (weight_decay_path == schema::WeightDecayPath::kInside)
    for (const engine::Segment& segment : tiny_segments().segments())
      for (std::size_t i = segment.offset; segment.decays && i < segment.offset + segment.element_count; ++i)
        expected[i] = expected[i] + 0.5F * parameters[i];
  EXPECT_EQ(found, expected);
  EXPECT_EQ(loss, static_cast<double>(parameters[0]));
}

TEST(Trainer, AddsTheWeightDecayWhereTheGradientLives) {
  for (const auto path : values_of<schema::WeightDecayPath>()) expect_gradient(path);
}

}  // namespace
}  // namespace tg::daemon

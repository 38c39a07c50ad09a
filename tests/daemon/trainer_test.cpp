// The compute thread with an engine that lives where the gradient and the state do: nothing is computed elsewhere.
#include "daemon/step/threads/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "daemon/run/memory_check.h"
#include "daemon/run/prepare.h"
#include "daemon/run/rebuild.h"
#include "daemon/step/job_layout.h"
#include "engine/compute_device.h"
#include "engine/data/picture.h"
#include "kernels/host_memory_space.h"
#include "temporary_directory.h"
#include "tests/engine/safetensors_files.h"
#include "tests/simulation/simulator/awkward_memory.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::tiny_model;
using simulation::tiny_segments;

constexpr std::chrono::seconds kTrainerPatience{60};

// Its gradient is a drawn one times the factor, its statistics are drawn too; its loss is the first parameter, in
// evaluation that and the first statistic.
class ToyEngine final : public engine::Engine {
 public:
  explicit ToyEngine(kernels::MemorySpace& space) : tensors_(space.make_kernels()) {}

  const engine::SegmentTable& segments() const override { return tiny_segments(); }
  const engine::SegmentTable& statistics() const override { return tiny_model().statistics; }
  double forward(const float* parameters, const engine::Batch&, const SegmentGate& ready) override {
    ready(0, tiny_segments().size());
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
  engine::EvaluationCounts evaluate(const float* parameters, const float* statistics, const engine::Batch& batch,
                                    std::span<float>) override {
    return {0, static_cast<std::uint64_t>(batch.count),
            static_cast<double>(first_of(parameters)) + static_cast<double>(statistics[0])};
  }
  std::string build() const override { return "toy"; }
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

// What an engine that can prefetch was asked for.
struct Asked {
  std::mutex mutex;
  std::vector<std::string> calls;
  void add(const std::string& call) {
    const std::lock_guard lock(mutex);
    calls.push_back(call);
  }
  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex);
    return std::exchange(calls, {});
  }
};

// Remembers each batch that it was given and looks whether it stays as it was, until it may change.
class PrefetchingEngine final : public engine::Engine {
 public:
  // waits: in backward, until the source has a batch to show.
  PrefetchingEngine(std::unique_ptr<engine::Engine> engine, const engine::BatchSource& source,
                    std::function<bool(std::uint64_t step)> waits, std::shared_ptr<Asked> asked)
      : engine_(std::move(engine)), source_(source), waits_(std::move(waits)), asked_(std::move(asked)) {}
  ~PrefetchingEngine() override {
    next_.check();
    asked_->add(next_.batch == nullptr ? "end" : "end after prefetch");
  }

  const engine::SegmentTable& segments() const override { return engine_->segments(); }
  const engine::SegmentTable& statistics() const override { return engine_->statistics(); }
  double forward(const float* parameters, const engine::Batch& batch, const SegmentGate& ready) override {
    const std::string which = std::to_string(batch.first_position);
    EXPECT_TRUE(next_.batch == nullptr || next_.batch == &batch);
    next_.check();
    asked_->add((next_.batch == nullptr ? "forward " : "forward of prefetched ") + which);
    next_ = {};
    now_ = Seen(batch);
    return engine_->forward(parameters, batch, ready);
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override {
    while (waits_(now_.position) && source_.peek() == nullptr) std::this_thread::yield();
    engine_->backward(factor, gradients, [&](std::size_t first, std::size_t last) {
      asked_->add("segment");
      sink(first, last);
    });
    now_.check();
    next_.check();
  }
  void forget_prefetch() override {
    next_.check();
    next_ = {};
  }
  void prefetch(const engine::Batch& next) override {
    EXPECT_EQ(next_.batch, nullptr);
    next_ = Seen(next);
    asked_->add("prefetch " + std::to_string(next.first_position));
  }
  void read_statistics(float* measured) const override { engine_->read_statistics(measured); }
  engine::EvaluationCounts evaluate(const float* parameters, const float* statistics, const engine::Batch& batch,
                                    std::span<float> logits) override {
    return engine_->evaluate(parameters, statistics, batch, logits);
  }
  std::string build() const override { return engine_->build(); }
  std::size_t activation_bytes() const override { return 0; }

 private:
  struct Seen {
    Seen() = default;
    explicit Seen(const engine::Batch& one)
        : batch(&one), position(one.first_position), images(one.images.begin(), one.images.end()) {}
    void check() const {
      if (batch == nullptr) return;
      EXPECT_EQ(batch->first_position, position);
      EXPECT_TRUE(std::ranges::equal(batch->images, images)) << position;
    }
    const engine::Batch* batch = nullptr;
    std::uint64_t position = 0;
    std::vector<float> images;
  };

  const std::unique_ptr<engine::Engine> engine_;
  const engine::BatchSource& source_;
  const std::function<bool(std::uint64_t)> waits_;
  const std::shared_ptr<Asked> asked_;
  Seen now_, next_;
};

using MakeKit = std::function<TrainingKit(kernels::MemorySpace&, const schema::JobSpec&)>;

TrainingKit kit_in(kernels::MemorySpace& space, const schema::JobSpec& job) {
  const auto prepared = std::make_shared<Prepared>();
  prepared->model = tiny_model();
  engine::Dataset data;  // one sample of one value, for testing
  data.test = {{1, 1, 1}, {}, {0.5F}, nullptr, {0}};
  prepared->recipe.input = data.test.stored;
  prepared->recipe.floats = true;
  prepared->data = std::make_shared<const engine::Dataset>(std::move(data));
  prepared->replica = std::make_shared<Replica>(space, prepared->model, 0, job.seed);
  const auto view = std::make_shared<PreparedView>();
  view->run = prepared;
  TrainingKit kit;
  kit.part = {Rank(0), {1}, schema::resolved_global_batch(job, 1)};
  kit.prepared = prepared;
  kit.view = view;
  kit.tensors = space.make_kernels();
  kit.gradients = kernels::MemoryArray(space, tiny_segments().padded_count());
  kit.engine = std::make_unique<ToyEngine>(space);
  return kit;
}

// A compute thread that is prepared, and what it reports.
struct Trained {
  const std::unique_ptr<kernels::MemorySpace> space = simulation::space_under_test(*kernels::available().front());
  std::shared_ptr<const Prepared> prepared;
  std::vector<std::pair<std::uint32_t, Result<std::shared_ptr<const PreparedView>>>> rebuilt;
  std::vector<StepEvent> events;
  std::counting_semaphore<> told{0};
  Progress progress;
  Trainer trainer;

  explicit Trained(const schema::JobSpec& job, const MakeKit& make_kit = kit_in, const Trainer::Rebuild& rebuild = {})
      : trainer({.job = job},
                {[this, job, make_kit](const std::function<void()>&) { return make_kit(*space, job); }, rebuild},
                progress, FaultInjection(), std::make_shared<Timeline>(), hooks()) {
    EXPECT_TRUE(told.try_acquire_for(kTrainerPatience));
  }
  Trainer::Hooks hooks() {
    return {[this](Result<std::shared_ptr<const PreparedView>> result) {
              prepared = std::move(result).value()->run;
              told.release();
            },
            [this](std::uint32_t view, Result<std::shared_ptr<const PreparedView>> result) {
              rebuilt.emplace_back(view, std::move(result));
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
  run.trainer.train({1, Step(0)}, layout, run.prepared->replica->parameters(), false);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));

  const std::vector<float> parameters = run.copy_of(run.prepared->replica->parameters());
  std::vector<float> expected = ToyEngine::gradient(1.0F / static_cast<float>(schema::resolved_global_batch(job, 1)));
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

// Preparing for a run that has been stopped is of no use, and takes the next run's processors.
TEST(Trainer, EndsPreparingWhenItGoes) {
  // The thread outlives what it does not come back to.
  const auto prepares = std::make_shared<std::binary_semaphore>(0), ended = std::make_shared<std::binary_semaphore>(0);
  struct ScopeGuard {
    std::shared_ptr<std::binary_semaphore> ended;
    ~ScopeGuard() { ended->release(); }
  };
  Progress progress;
  {
    const Trainer trainer({},
                          {[prepares, ended](const std::function<void()>& advance) -> Result<TrainingKit> {
                             const ScopeGuard guard{ended};
                             prepares->release();
                             while (true) advance();
                           },
                           {}},
                          progress, FaultInjection(), std::make_shared<Timeline>(), Trainer::Hooks{});
    ASSERT_TRUE(prepares->try_acquire_for(kTrainerPatience));
  }
  EXPECT_TRUE(ended->try_acquire_for(kTrainerPatience));
}

// What cannot be interrupted is not forgotten: it still takes memory and processors.
TEST(Trainer, ReportsAnOrphanedThread) {
  const auto prepares = std::make_shared<std::binary_semaphore>(0),
             goes_on = std::make_shared<std::binary_semaphore>(0);
  Progress progress;
  {
    const Trainer trainer({.job = {}, .run = "run-1"},
                          {[prepares, goes_on](const std::function<void()>& advance) -> Result<TrainingKit> {
                             prepares->release();
                             goes_on->acquire();
                             advance();
                             ADD_FAILURE() << "this is not needed any more";
                             return Error{ErrorKind::kFailed, ""};
                           },
                           {}},
                          progress, FaultInjection(), std::make_shared<Timeline>(), Trainer::Hooks{});
    ASSERT_TRUE(prepares->try_acquire_for(kTrainerPatience));
    EXPECT_EQ(progress.orphaned_threads.what(), "");
  }
  EXPECT_NE(progress.orphaned_threads.what().find("still busy with run run-1"), std::string::npos);
  goes_on->release();
  for (const auto late = std::chrono::steady_clock::now() + kTrainerPatience;
       !progress.orphaned_threads.what().empty() && std::chrono::steady_clock::now() < late;)
    std::this_thread::yield();
  EXPECT_EQ(progress.orphaned_threads.what(), "");
}

const LocalShare kAlone{.self = Rank(0), .weights = {1}, .global_batch = 8};

// A preparation ends wherever its next report is due, and a pass over a large batch reports each layer.
TEST(Preparation, EndsAtEachOfItsWords) {
  const kernels::Kernels& kernels = *kernels::available().front();
  kernels::HostMemorySpace host(kernels);
  const engine::ComputeDevice compute(host);
  schema::JobSpec job;
  job.data_train = job.data_test = 16;
  job.global_batch = 8;
  const PreparationOptions options{.job = job, .data_dir = "", .threads = 1, .node = ""};
  std::size_t words = 0;
  const auto kit = prepare(options, kAlone, compute, [&] { ++words; });
  ASSERT_TRUE(kit.ok()) << kit.error().message;
  EXPECT_GT(words, 2 * kit->prepared->model.segments.size()) << "forward and backward, layer by layer";
  struct Stopped {};
  for (std::size_t last = 0; last < words; last += 1 + words / 20) {
    std::size_t said = 0;
    const auto stop_there = [&] {
      if (said++ == last) throw Stopped{};
    };
    EXPECT_THROW((void)prepare(options, kAlone, compute, stop_there), Stopped) << last << " of " << words;
    EXPECT_EQ(said, last + 1);
  }
}

TEST(Preparation, EndsWhileItReadsParameters) {
  const kernels::Kernels& kernels = *kernels::available().front();
  kernels::HostMemorySpace host(kernels);
  const engine::ComputeDevice compute(host);
  const tests::TemporaryDirectory directory;
  schema::JobSpec job;
  job.data_train = job.data_test = 16;
  job.global_batch = 8;
  PreparationOptions options{.job = job, .data_dir = "", .threads = 1, .node = ""};
  std::size_t drawn = 0, read = 0;
  const auto first = prepare(options, kAlone, compute, [&] { ++drawn; });
  ASSERT_TRUE(first.ok()) << first.error().message;
  const engine::SegmentTable& segments = first->prepared->model.segments;
  options.job.initial = directory.path() + "/initial.safetensors";
  const auto ones = [](std::size_t, std::span<float> values) -> Status {
    std::ranges::fill(values, 0.01f);
    return {};
  };
  ASSERT_TRUE(engine::write_safetensors(options.job.initial, engine::tensors_of(segments, ones), {}).ok());
  const auto second = prepare(options, kAlone, compute, [&] { ++read; });
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_GE(read, drawn + segments.size()) << "a word for each tensor that is looked at";
}

// What a start shows while it waits.
TEST(Preparation, ReportsEachImageAndTheEnd) {
  const kernels::Kernels& kernels = *kernels::available().front();
  kernels::HostMemorySpace host(kernels);
  const engine::ComputeDevice compute(host);
  schema::JobSpec job;
  job.data_train = job.data_test = 16;
  job.global_batch = 8;
  std::vector<std::pair<std::size_t, std::size_t>> told;
  PreparationOptions options{.job = job, .data_dir = "", .threads = 1, .node = ""};
  options.show_images = [&](std::size_t done, std::size_t of) { told.emplace_back(done, of); };
  ASSERT_TRUE(prepare(options, kAlone, compute, [] {}).ok());
  ASSERT_GT(told.size(), 1u);
  EXPECT_EQ(told.back(), std::pair(std::size_t{0}, std::size_t{0}));
  told.pop_back();
  EXPECT_EQ(told.back().second, 16u);
  struct Stopped {};
  EXPECT_THROW((void)prepare(options, kAlone, compute, [] { throw Stopped{}; }), Stopped);
  EXPECT_EQ(told.back(), std::pair(std::size_t{0}, std::size_t{0})) << "also where it is ended";
}

TEST(Progress, CountsOfImagesAreGrouped) {
  EXPECT_EQ(images_text(0, 7), "0 of 7 images");
  EXPECT_EQ(images_text(999, 1000), "999 of 1,000 images");
  EXPECT_EQ(images_text(1200, 60000), "1,200 of 60,000 images");
  EXPECT_EQ(images_text(1234567, 12345678), "1,234,567 of 12,345,678 images");
}

TEST(Trainer, AddsTheWeightDecayWhereTheGradientLives) {
  for (const auto path : values_of<schema::WeightDecayPath>()) expect_gradient(path);
}

constexpr std::uint64_t kPrefetchSteps = 4;

// Samples of one value each, one a step; those of positions from `held` on are not there before they are let go.
class Samples final : public engine::PictureSource {
 public:
  explicit Samples(std::size_t held) : held_(held) {}
  Status read(std::size_t image, const engine::Shrink&, engine::Picture& picture) const override {
    std::unique_lock lock(mutex_);
    const std::size_t position = reads_++;
    changed_.wait(lock, [&] { return position < held_; });
    picture.shape(1, 1, 1);
    picture.pixels[0] = static_cast<std::uint8_t>(10 * image);
    return {};
  }
  void let_go() const {
    const std::lock_guard lock(mutex_);
    held_ = SIZE_MAX;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::size_t held_, reads_ = 0;
};

struct Prefetched {
  std::shared_ptr<const Samples> samples;
  std::shared_ptr<Asked> asked = std::make_shared<Asked>();
  schema::JobSpec job;
  Layout layout;
  Trained run;

  explicit Prefetched(std::size_t held)
      : samples(std::make_shared<const Samples>(held)),
        layout(make_layout(tiny_segments(), layout_options(job, 1, {}))),
        run(job, [this, held](kernels::MemorySpace& space, const schema::JobSpec& of) {
          return make_kit(space, of, held);
        }) {}
  ~Prefetched() { samples->let_go(); }

  TrainingKit make_kit(kernels::MemorySpace& space, const schema::JobSpec& of, std::size_t held) {
    TrainingKit kit = kit_in(space, of);
    const auto data = std::make_shared<engine::Dataset>();
    data->train.stored = {1, 1, 1};
    data->train.labels.resize(kPrefetchSteps);
    data->train.source = samples;
    engine::BatchSource::Options options;
    options.global_batch = 1;
    options.share = {0, 1};
    options.last_step = kPrefetchSteps;
    options.recipe.input = {1, 1, 1};
    options.space = &space;
    kit.batches = std::make_unique<engine::BatchSource>(data, options);
    kit.engine = std::make_unique<PrefetchingEngine>(
        std::move(kit.engine), *kit.batches,
        [held](std::uint64_t step) { return step + 1 < std::min<std::uint64_t>(held, kPrefetchSteps); }, asked);
    return kit;
  }
  void train(std::uint64_t step) {
    run.trainer.train({1, Step(step)}, layout, run.prepared->replica->parameters(), false);
    for (std::size_t b = 0; b < layout.buckets.size(); ++b) ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  }
  // Once the step is over on the compute thread too.
  std::vector<std::string> asked_in(std::uint64_t step) {
    train(step);
    run.trainer.evaluate({1, Step(step)});
    EXPECT_TRUE(run.told.try_acquire_for(kTrainerPatience));
    return asked->taken();
  }
};

std::vector<std::string> calls_of(const std::string& forward, const std::string& prefetch) {
  std::vector<std::string> calls = {forward};
  for (std::size_t s = 0; s < tiny_segments().size(); ++s) {
    calls.push_back("segment");
    if (s == 0 && !prefetch.empty()) calls.push_back(prefetch);
  }
  return calls;
}

TEST(Trainer, LetsTheEngineHaveTheNextBatchDuringBackward) {
  Prefetched steps(SIZE_MAX);
  EXPECT_EQ(steps.asked_in(0), calls_of("forward 0", "prefetch 1"));
  EXPECT_EQ(steps.asked_in(1), calls_of("forward of prefetched 1", "prefetch 2"));
  EXPECT_EQ(steps.asked_in(2), calls_of("forward of prefetched 2", "prefetch 3"));
  EXPECT_EQ(steps.asked_in(3), calls_of("forward of prefetched 3", ""));
}

TEST(Trainer, DoesNotWaitForTheNextBatch) {
  Prefetched steps(2);
  EXPECT_EQ(steps.asked_in(0), calls_of("forward 0", "prefetch 1"));
  EXPECT_EQ(steps.asked_in(1), calls_of("forward of prefetched 1", ""));
  steps.samples->let_go();
  EXPECT_EQ(steps.asked_in(2).front(), "forward 2");
}

TEST(Trainer, EndsTheEngineBeforeTheBatches) {
  std::shared_ptr<Asked> asked;
  {
    Prefetched steps(SIZE_MAX);
    asked = steps.asked;
    steps.asked_in(0);
  }
  EXPECT_EQ(asked->taken(), std::vector<std::string>{"end after prefetch"});
}

// Lets its engine's calls wait where a test wants them to.
struct Held {
  std::counting_semaphore<> came{0}, goes_on{0};
  std::atomic<bool> in_backward{false};
};

class HeldEngine final : public engine::Engine {
 public:
  HeldEngine(std::unique_ptr<engine::Engine> engine, std::shared_ptr<Held> held)
      : engine_(std::move(engine)), held_(std::move(held)) {}
  const engine::SegmentTable& segments() const override { return engine_->segments(); }
  const engine::SegmentTable& statistics() const override { return engine_->statistics(); }
  double forward(const float* parameters, const engine::Batch& batch, const SegmentGate& ready) override {
    return engine_->forward(parameters, batch, ready);
  }
  void backward(float factor, float* gradients, const SegmentSink& sink) override {
    if (held_->in_backward) {
      held_->came.release();
      held_->goes_on.acquire();
    }
    engine_->backward(factor, gradients, sink);
  }
  void read_statistics(float* measured) const override { engine_->read_statistics(measured); }
  engine::EvaluationCounts evaluate(const float* parameters, const float* statistics, const engine::Batch& batch,
                                    std::span<float> logits) override {
    return engine_->evaluate(parameters, statistics, batch, logits);
  }
  std::string build() const override { return engine_->build(); }
  std::size_t activation_bytes() const override { return 0; }

 private:
  const std::unique_ptr<engine::Engine> engine_;
  const std::shared_ptr<Held> held_;
};

// An abandoned order is not reported any more, wherever it is, and the next one is carried out whole: in the gate, in
// backward, and where it waits behind another.
TEST(Trainer, CarriesOutTheOrderAfterAnAbandonedOne) {
  const auto held = std::make_shared<Held>();
  schema::JobSpec job;
  job.bucket_parameters = 1'000;
  Trained run(job, [held](kernels::MemorySpace& space, const schema::JobSpec& of) {
    TrainingKit kit = kit_in(space, of);
    kit.engine = std::make_unique<HeldEngine>(std::move(kit.engine), held);
    return kit;
  });
  const Layout layout = make_layout(tiny_segments(), layout_options(job, 1, {}));
  const kernels::ConstFloats parameters = run.prepared->replica->parameters();
  run.trainer.abandon();
  run.trainer.train({1, Step(7)}, layout, parameters, true);  // its parameters never come
  run.trainer.abandon();
  held->in_backward = true;
  run.trainer.train({2, Step(7)}, layout, parameters, false);
  ASSERT_TRUE(held->came.try_acquire_for(kTrainerPatience));
  run.trainer.train({2, Step(8)}, layout, parameters, true);  // waits
  held->in_backward = false;
  run.trainer.abandon();
  run.trainer.train({3, Step(6)}, layout, parameters, false);
  held->goes_on.release();
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  run.trainer.evaluate({3, Step(7)});
  ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  ASSERT_EQ(run.events.size(), layout.buckets.size() + 1);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
    const auto& ready = std::get<GradientReady>(run.events[b]);
    EXPECT_EQ(ready.bucket, b);
    EXPECT_EQ(ready.of.view, 3u);
    EXPECT_EQ(ready.of.step, Step(6));
  }
  EXPECT_EQ(std::get<Evaluated>(run.events.back()).of.view, 3u);
}

// What a rebuild does to the kit of these tests.
Status take_part(TrainingKit& kit, const LocalShare& part) {
  kit.part = part;
  const auto view = std::make_shared<PreparedView>(*kit.view);
  view->local_batch = static_cast<std::uint32_t>(part.share().count);
  kit.view = view;
  return {};
}

// A job whose batch is known, in several buckets.
schema::JobSpec job_of_eight() {
  schema::JobSpec job;
  job.weight_decay = 0;
  job.global_batch = 8;
  job.bucket_parameters = 1'000;
  return job;
}

TEST(Trainer, WeighsItsGradientByTheViewThatItIsFittedTo) {
  const schema::JobSpec job = job_of_eight();
  Trained run(job, kit_in, [](TrainingKit& kit, const LocalShare& part, Step first, const std::function<void()>&) {
    EXPECT_EQ(first, Step(5));
    return take_part(kit, part);
  });
  const Layout layout = make_layout(tiny_segments(), layout_options(job, 3, {}));
  run.trainer.rebuild(4, {Rank(1), {1, 2, 1}, 8}, Step(5));
  ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  ASSERT_EQ(run.rebuilt.size(), 1u);
  EXPECT_EQ(run.rebuilt[0].first, 4u);
  EXPECT_EQ(run.rebuilt[0].second.value()->local_batch, 4u);
  run.trainer.train({4, Step(5)}, layout, run.prepared->replica->parameters(), false);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  EXPECT_EQ(run.copy_of(run.trainer.gradients()), ToyEngine::gradient(3.0F / 8.0F));
}

// Another change comes while the engine is being made: only the last order is reported.
TEST(Trainer, DropsARefitThatWasAbandoned) {
  const auto came = std::make_shared<std::counting_semaphore<>>(0);
  Trained run(job_of_eight(), kit_in,
              [came](TrainingKit& kit, const LocalShare& part, Step, const std::function<void()>& advance) {
                if (part.weights.size() > 2) {
                  kit.engine.reset();
                  came->release();
                  while (true) advance();  // until it is not needed any more
                }
                return take_part(kit, part);
              });
  run.trainer.rebuild(2, {Rank(0), {1, 1, 1}, 8}, Step(0));
  ASSERT_TRUE(came->try_acquire_for(kTrainerPatience));
  run.trainer.abandon();
  run.trainer.rebuild(3, {Rank(0), {1, 1}, 8}, Step(0));
  ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  ASSERT_EQ(run.rebuilt.size(), 1u);
  EXPECT_EQ(run.rebuilt[0].first, 3u);
}

// A share that does not fit is reported, and not used; neither is an engine that has failed, until another
// one is made.
TEST(Trainer, ContinuesWithTheNextEngine) {
  const schema::JobSpec job = job_of_eight();
  kernels::MemorySpace* space = nullptr;
  Trained run(
      job,
      [&space](kernels::MemorySpace& lives_in, const schema::JobSpec& of) {
        space = &lives_in;
        return kit_in(lives_in, of);
      },
      [&space](TrainingKit& kit, const LocalShare& part, Step, const std::function<void()>&) -> Status {
        if (part.share().count > 4) return Error{ErrorKind::kRefused, "8 samples do not fit"};
        if (!kit.engine) kit.engine = std::make_unique<ToyEngine>(*space);
        return take_part(kit, part);
      });
  const Layout layout = make_layout(tiny_segments(), layout_options(job, 1, {}));
  run.trainer.rebuild(2, {Rank(0), {1}, 8}, Step(0));
  ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  EXPECT_EQ(run.rebuilt.back().second.error().message, "8 samples do not fit");
  run.trainer.train({2, Step(0)}, layout, run.prepared->replica->parameters(), false);  // nothing comes
  run.trainer.abandon();
  run.trainer.rebuild(3, {Rank(0), {1, 1}, 8}, Step(0));
  ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  EXPECT_TRUE(run.rebuilt.back().second.ok());
  run.trainer.train({3, Step(0)}, layout, run.prepared->replica->parameters(), false);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  for (const StepEvent& event : run.events) EXPECT_EQ(std::get<GradientReady>(event).of.view, 3u);
}

// A kit of real engines, as a node prepares it.
struct Kit {
  kernels::HostMemorySpace host{*kernels::available().front()};
  const engine::ComputeDevice compute{host};
  PreparationOptions options{.job = {}, .data_dir = "", .threads = 1, .node = "node-a"};
  TrainingKit kit;

  explicit Kit(std::uint64_t global_batch, LocalShare part, std::uint64_t memory_bytes = 0) {
    options.job.data_train = options.job.data_test = 16;
    options.job.global_batch = part.global_batch = global_batch;
    options.memory_bytes = memory_bytes;
    Result<TrainingKit> made = prepare(options, part, compute, [] {});
    EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
    if (made) kit = *std::move(made);
  }
  Status fit(LocalShare part, std::uint64_t first) {
    part.global_batch = options.job.global_batch;
    return rebuild(options, kit, part, Step(first), compute, [] {});
  }
  // Forward and backward of the step that the samples begin at.
  std::vector<float> gradient() {
    kit.engine->forward(kit.prepared->replica->parameters().address(), kit.batches->next());
    kit.engine->backward(static_cast<float>(kit.part.factor()), kit.gradients.floats().address(),
                         [](std::size_t, std::size_t) {});
    std::vector<float> values(kit.prepared->model.segments.padded_count());
    kit.prepared->replica->copy_out(kit.gradients.floats(), 0, values);
    return values;
  }
};

TEST(Preparation, FitsAnotherShareAsIfItHadBegunWithIt) {
  const LocalShare of_three{.self = Rank(1), .weights = {1, 1, 2}}, of_two{.self = Rank(0), .weights = {1, 2}};
  Kit refitted(12, of_three), fresh(12, of_two);
  EXPECT_EQ(refitted.kit.view->local_batch, 3u);
  (void)refitted.gradient();  // step 0's; the next ones are being filled
  ASSERT_TRUE(refitted.fit(of_two, 1).ok());
  EXPECT_EQ(refitted.kit.view->local_batch, 4u);
  EXPECT_GT(refitted.kit.view->step_seconds, 0);
  fresh.kit.batches->seek(1);
  EXPECT_EQ(refitted.gradient(), fresh.gradient());
}

TEST(Preparation, KeepsTheEngineOfAsManySamples) {
  Kit one(12, {.self = Rank(1), .weights = {1, 1, 1}}), other(12, {.self = Rank(0), .weights = {1, 2}});
  const engine::Engine* const engine = one.kit.engine.get();
  const engine::BatchSource* const batches = one.kit.batches.get();
  ASSERT_TRUE(one.fit({.self = Rank(1), .weights = {1, 1, 1}}, 0).ok());
  EXPECT_EQ(one.kit.engine.get(), engine);
  EXPECT_EQ(one.kit.batches.get(), batches);
  ASSERT_TRUE(one.fit({.self = Rank(0), .weights = {1, 2}}, 2).ok());  // four samples, but other ones
  EXPECT_EQ(one.kit.engine.get(), engine);
  EXPECT_EQ(one.kit.batches->next_step(), 2u);
  other.kit.batches->seek(2);
  EXPECT_EQ(one.gradient(), other.gradient());
}

// Alone it has 64 times as many samples.
TEST(Preparation, ComputesALargerShareThatDoesNotFitInParts) {
  const LocalShare small{.self = Rank(0), .weights = {1, 63}}, alone{.self = Rank(0), .weights = {1}};
  std::uint64_t bytes = 0;
  {
    const Kit free(4096, small);
    bytes = min_run_bytes(free.options.job, free.kit.prepared->model, 2, 1) + free.kit.view->activation_bytes +
            (40u << 20);  // the samples
  }
  Kit bounded(4096, small, bytes);
  const Status fits = bounded.fit(alone, 0);
  ASSERT_FALSE(fits.ok());
  EXPECT_EQ(fits.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(fits.error().message.starts_with("node-a: ")) << fits.error().message;
  EXPECT_TRUE(bounded.fit(small, 0).ok()) << "the room is still there";
  LocalShare in_parts = alone;
  in_parts.first_weights = 64;
  EXPECT_TRUE(bounded.fit(in_parts, 0).ok()) << "each as large as its share was";
  EXPECT_EQ(bounded.kit.view->local_batch, 4096u);
}

// The samples of a step are the step's, whatever came before it.
TEST(Trainer, GoesToTheSamplesOfAnyStep) {
  Prefetched steps(SIZE_MAX);
  EXPECT_EQ(steps.asked_in(1).front(), "forward 1");
  EXPECT_EQ(steps.asked_in(3).front(), "forward 3");
  EXPECT_EQ(steps.asked_in(0).front(), "forward 0");
  EXPECT_EQ(steps.asked_in(0).front(), "forward 0");
  EXPECT_EQ(steps.asked_in(1).front(), "forward of prefetched 1");
}

TEST(Trainer, EvaluatesWithTheAverageAndTheRunningStatistics) {
  Trained run({});
  Replica& replica = *run.prepared->replica;
  replica.commit(simulation::draw_statistics(1, 0, 0));
  replica.confirm(0.25F);
  run.trainer.evaluate({1, Step(1)});
  ASSERT_TRUE(run.told.try_acquire_for(kTrainerPatience));
  const auto& evaluated = std::get<Evaluated>(run.events[0]);
  EXPECT_EQ(evaluated.counts.total, 1u);
  EXPECT_EQ(evaluated.counts.loss_sum,
            static_cast<double>(run.copy_of(replica.average())[0]) + static_cast<double>(replica.statistics()[0]));
}

}  // namespace
}  // namespace tg::daemon

// The CUDA engine on a device that is not there (device.h): what a GPU would only show as a wrong number. The tests
// that the CPU engine passes run over it as well (CMakeLists.txt); here is what only this engine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "engine/cuda/cuda_engine.h"
#include "engine/micro_batches.h"
#include "engine/models/builder.h"
#include "kernels/host_home.h"
#include "tests/engine/cuda/stand_in/device.h"
#include "tests/engine/random_batch.h"

namespace tg::engine {

// In the tests of the CPU engine this is make_cpu_engine.
Result<std::unique_ptr<Engine>> make_stand_in_engine(const Model& model, const EngineOptions& options) {
  return cuda::make_cuda_engine(model, {0, "stand-in", Math::kFp32}, options);
}

namespace cuda {
namespace {

const EngineOptions kOptions{.batch = 3, .evaluation_batch = 2, .seed = 5};

std::unique_ptr<Engine> make_engine(const Model& model, const EngineOptions& options = kOptions) {
  return make_stand_in_engine(model, options).value();
}

struct Step {
  double loss;
  std::vector<float> gradient, measured;
};

Step take_step(Engine& engine, const AlignedArray<float>& parameters, const Batch& batch, AlignedArray<float>& room) {
  std::fill(room.begin(), room.end(), 0.0F);
  Step step{engine.forward(parameters.data(), batch), {}, std::vector<float>(engine.statistics().padded_count())};
  engine.read_statistics(step.measured.data());
  engine.backward(1.5F, room.data(), [](std::size_t, std::size_t) {});
  step.gradient.assign(room.begin(), room.end());
  return step;
}

class Replay : public testing::TestWithParam<ModelKind> {};

// Each step as a new engine takes it for the first time, which captures nothing.
TEST_P(Replay, HasTheBitsOfTheFirstTime) {
  const Model model =
      make_model({.kind = GetParam(),
                  .input = GetParam() == ModelKind::kResnet20 ? std::optional(ImageShape{3, 8, 8}) : std::nullopt})
          .value();
  const auto engine = make_engine(model);
  const AlignedArray<float> halves[] = {random_parameters(model, 0.1F, 1), random_parameters(model, 0.1F, 2)};
  AlignedArray<float> rooms[] = {flat_array(model), flat_array(model)};
  const stand_in::Counts before = stand_in::counts();
  constexpr std::size_t kSteps = 7;
  std::vector<Step> steps;
  for (std::size_t i = 0; i < kSteps; ++i) {
    Batch batch = random_batch(model, 3, 100 + i);
    batch.first_position = 3 * i;
    steps.push_back(take_step(*engine, halves[i % 2], batch, rooms[i / 3 % 2]));
    if (i % 2 == 1) {  // with an evaluation between, and a forward that nothing goes back through
      const std::vector<float> running(model.statistics.padded_count(), 1.0F);
      engine->evaluate(halves[0].data(), running.data(), random_batch(model, 2, 7));
      engine->forward(halves[1].data(), random_batch(model, 3, 8));
    }
  }
  EXPECT_EQ(stand_in::counts().captures - before.captures, 2u + 4u);  // halves; and each with either room
  EXPECT_GT(stand_in::counts().graph_launches - before.graph_launches, kSteps);
  for (std::size_t i = 0; i < kSteps; ++i) {
    Batch batch = random_batch(model, 3, 100 + i);
    batch.first_position = 3 * i;
    const Step once = take_step(*make_engine(model), halves[i % 2], batch, rooms[0]);
    EXPECT_EQ(once.loss, steps[i].loss) << i;
    EXPECT_EQ(once.gradient, steps[i].gradient) << i;
    EXPECT_EQ(once.measured, steps[i].measured) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Replay, testing::Values(ModelKind::kLenet, ModelKind::kResnet20),
                         [](const testing::TestParamInfo<ModelKind>& each) {
                           std::string name = to_word(each.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Sink, SeesEachRangeComplete) {
  const Model model = make_model(ModelKind::kLenet);
  const auto engine = make_engine(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  const Batch batch = random_batch(model, 3, 4);
  AlignedArray<float> room = flat_array(model);
  const Step whole = take_step(*engine, parameters, batch, room);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::fill(room.begin(), room.end(), 0.0F);
    engine->forward(parameters.data(), batch);
    std::size_t next = model.segments.size();
    engine->backward(1.5F, room.data(), [&](std::size_t first, std::size_t last) {
      EXPECT_EQ(last, next);
      next = first;
      for (std::size_t s = first; s < last; ++s) {
        const Segment& segment = model.segments[s];
        EXPECT_TRUE(std::equal(room.data() + segment.offset, room.data() + segment.offset + segment.element_count,
                               whole.gradient.data() + segment.offset))
            << segment.name;
      }
      // What is not complete is not there yet: backward goes on behind the sink.
      if (first > 0) {
        EXPECT_EQ(room[model.segments[0].offset], 0.0F) << first;
      }
    });
    EXPECT_EQ(next, 0u);
  }
}

TEST(Forward, GoesOnAfterAGateThatThrew) {
  const Model model = make_model(ModelKind::kLenet);
  const auto engine = make_engine(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  AlignedArray<float> room = flat_array(model);
  const Step expected = take_step(*engine, parameters, random_batch(model, 3, 4), room);
  EXPECT_THROW(engine->forward(parameters.data(), random_batch(model, 3, 9),
                               [](std::size_t, std::size_t) { throw std::runtime_error("view changed"); }),
               std::runtime_error);
  EXPECT_EQ(take_step(*engine, parameters, random_batch(model, 3, 4), room).gradient, expected.gradient);
}

void fill(const Model& model, std::uint64_t seed, Batch& batch) {
  const Batch drawn = random_batch(model, batch.count, seed);
  std::ranges::copy(drawn.images, batch.images.begin());
  batch.labels = drawn.labels;
  batch.first_position = static_cast<std::uint64_t>(batch.count) * seed;
}

// In memory that is page-locked where there is some.
Batch locked_batch(const Model& model, std::uint64_t seed, int count = 3) {
  Batch batch;
  batch.count = count;
  batch.images = kernels::cuda::allocate_host(static_cast<std::size_t>(count) * model.input.elements());
  fill(model, seed, batch);
  return batch;
}

void spoil(Batch& batch) { std::ranges::fill(batch.images, std::nanf("")); }

void expect_same(const Step& got, const Step& want, std::uint64_t step) {
  EXPECT_EQ(got.loss, want.loss) << step;
  EXPECT_EQ(got.gradient, want.gradient) << step;
}

// With streams that run as late as they may, or as soon as they can. Memory that is freed makes all of them run, so
// what is compared with is made first.
class Prefetching : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  Prefetching() { std::tie(stand_in::faults().computes_late, stand_in::faults().copies_late) = GetParam(); }
  ~Prefetching() override {
    EXPECT_EQ(stand_in::counts().frees_under_work, before_);
    stand_in::faults() = {};
  }
  // That an engine takes which was never used before.
  Step step_of(Engine& engine, std::uint64_t seed, int count = 3) {
    return take_step(engine, parameters_, locked_batch(model_, seed, count), room_);
  }
  Step step_of(std::uint64_t seed) { return step_of(*make_engine(model_), seed); }
  // Steps 0, 1, ... with two batches in turns, as a run has them: what was trained on is filled anew. The
  // engine may have the next one before backward, in its sink, or after it.
  void expect_steps(Engine& engine, int count, const std::vector<Step>& expected) {
    Batch batches[] = {locked_batch(model_, 0, count), locked_batch(model_, 1, count)};
    for (std::uint64_t k = 0; k < expected.size(); ++k) {
      Batch &batch = batches[k % 2], &next = batches[(k + 1) % 2];
      std::fill(room_.begin(), room_.end(), 0.0F);
      Step step{engine.forward(parameters_.data(), batch), {}, {}};
      if (k % 3 == 0) engine.prefetch(next);
      engine.backward(1.5F, room_.data(), [&](std::size_t, std::size_t) {
        if (k % 3 == 1) engine.prefetch(next);
      });
      spoil(batch);
      if (k % 3 == 2) engine.prefetch(next);
      step.gradient.assign(room_.begin(), room_.end());
      expect_same(step, expected[k], k);
      fill(model_, k + 2, batch);
      if (k % 4 == 0) {  // which leaves what was prefetched where it is
        const std::vector<float> running(model_.statistics.padded_count(), 1.0F);
        engine.evaluate(parameters_.data(), running.data(), random_batch(model_, 2, 7));
      }
    }
    engine.forward(parameters_.data(), batches[expected.size() % 2]);
  }

  const Model model_ = ModelBuilder("m", {2, 6, 6})
                           .convolution("conv1", {.count = 5, .kernel = 3, .bias = false}, {})
                           .batch_normalization("bn1", {})
                           .dense("fc1", 20, {})
                           .relu()
                           .dropout(0.5)
                           .dense("fc2", 4, {})
                           .build()
                           .value();
  const AlignedArray<float> parameters_ = random_parameters(model_, 0.5F, 1);
  AlignedArray<float> room_ = flat_array(model_);

 private:
  const std::size_t before_ = stand_in::counts().frees_under_work;
};

constexpr std::uint64_t kSteps = 9;

TEST_P(Prefetching, LeavesEveryStepItsBits) {
  std::vector<Step> expected;
  for (std::uint64_t k = 0; k < kSteps; ++k) expected.push_back(step_of(k));
  expect_steps(*make_engine(model_), 3, expected);
}

TEST_P(Prefetching, LeavesStepsInPartsTheirBits) {
  constexpr int kBatch = 9;
  kernels::HostHome home(*kernels::available().back());
  const auto in_parts = [&] {
    return make_micro_batches(make_engine(model_), home, {.batch = kBatch, .micro_batch = 3});
  };
  std::vector<Step> expected;
  for (std::uint64_t k = 0; k < kSteps; ++k) expected.push_back(step_of(*in_parts(), k, kBatch));
  expect_steps(*in_parts(), kBatch, expected);
}

TEST_P(Prefetching, IsOfNoUseToAnotherBatch) {
  const double loss_of_b = step_of(2).loss, loss_of_c = step_of(3).loss;
  const auto engine = make_engine(model_);
  Batch a = locked_batch(model_, 1), b = locked_batch(model_, 2);
  engine->prefetch(a);
  const double loss = engine->forward(parameters_.data(), b);
  spoil(a);
  EXPECT_EQ(loss, loss_of_b);
  fill(model_, 1, a);
  engine->prefetch(a);
  engine->prefetch(b);
  spoil(a);
  EXPECT_EQ(engine->forward(parameters_.data(), b), loss_of_b);
  fill(model_, 3, a);
  EXPECT_EQ(engine->forward(parameters_.data(), a), loss_of_c);
}

TEST_P(Prefetching, MayEndAtAnyTime) {
  const Step expected = step_of(2);
  const auto engine = make_engine(model_);
  {
    const Batch batch = locked_batch(model_, 1);
    engine->prefetch(batch);
    EXPECT_THROW(engine->forward(parameters_.data(), batch,
                                 [](std::size_t, std::size_t) { throw std::runtime_error("the run is over"); }),
                 std::runtime_error);
  }
  expect_same(step_of(*engine, 2), expected, 2);
  const Batch batch = locked_batch(model_, 3);
  auto ended = make_engine(model_);
  ended->prefetch(batch);
  ended.reset();
}

INSTANTIATE_TEST_SUITE_P(Streams, Prefetching, testing::Combine(testing::Bool(), testing::Bool()),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param) ? "late_compute_" : "early_compute_") +
                                  (std::get<1>(each.param) ? "late_copy" : "early_copy");
                         });

// Against the contract the batch is spoiled where its copy is done: forward has the copy.
TEST(Prefetch, IsUsed) {
  const Model model = make_model(ModelKind::kLenet);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  stand_in::faults().copies_late = false;
  const auto engine = make_engine(model);
  stand_in::faults() = {};
  Batch batch = locked_batch(model, 1);
  engine->prefetch(batch);
  spoil(batch);
  EXPECT_EQ(engine->forward(parameters.data(), batch),
            make_engine(model)->forward(parameters.data(), locked_batch(model, 1)));
}

TEST(Prefetch, LeavesOrdinaryMemoryToForward) {
  const Model model = make_model(ModelKind::kLenet);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  const double loss = make_engine(model)->forward(parameters.data(), locked_batch(model, 1));
  const auto engine = make_engine(model);
  const kernels::HostArray locked = kernels::cuda::allocate_host(100);
  EXPECT_TRUE(kernels::cuda::is_page_locked(locked.data()));
  EXPECT_TRUE(kernels::cuda::is_page_locked(locked.data() + 99));
  EXPECT_TRUE(std::ranges::all_of(locked, [](float each) { return each == 0; }));
  stand_in::faults().no_page_locked_memory = true;
  const Batch batch = locked_batch(model, 1);
  stand_in::faults() = {};
  EXPECT_FALSE(kernels::cuda::is_page_locked(batch.images.data()));
  const std::size_t launches = stand_in::counts().launches;
  engine->prefetch(batch);
  EXPECT_EQ(stand_in::counts().launches, launches);
  EXPECT_EQ(engine->forward(parameters.data(), batch), loss);
}

TEST(Choices, AreDeterministicAndAccurate) {
  const auto engine = make_engine(make_model(ModelKind::kLenet));
  EXPECT_EQ(engine->choices(),
            "conv1 forward: algorithm 0, 0 MiB\nconv1 backward weights: algorithm 1, 1 MiB\n"
            "conv2 forward: algorithm 0, 0 MiB\nconv2 backward weights: algorithm 1, 1 MiB\n"
            "conv2 backward data: algorithm 1, 1 MiB\n"
            "fc1 forward: algorithm 2a-0-7, 1 MiB\nfc1 backward weights: algorithm 2a-0-7, 1 MiB\n"
            "fc1 backward data: algorithm 2a-0-7, 1 MiB\n"
            "fc2 forward: algorithm 2a-0-7, 1 MiB\nfc2 backward weights: algorithm 2a-0-7, 1 MiB\n"
            "fc2 backward data: algorithm 2a-0-7, 1 MiB\n"
            "conv1 evaluation: algorithm 0, 0 MiB\nconv2 evaluation: algorithm 0, 0 MiB\n"
            "fc1 evaluation: algorithm 2a-0-7, 1 MiB\nfc2 evaluation: algorithm 2a-0-7, 1 MiB");
  EXPECT_LE(engine->build().size(), 400u) << engine->build();
}

TEST(Choices, CanBeGiven) {
  const Model model = make_model(ModelKind::kLenet);
  EngineOptions options = kOptions;
  options.choices =
      "conv2 backward weights: algorithm 2, 2 MiB\nfc1 forward: algorithm 2b-0-7, 1 MiB\nfc2 evaluation: algorithm "
      "2b-0-7, 1 MiB";
  const std::string chosen = make_engine(model, options)->choices();
  EXPECT_NE(chosen.find("conv2 backward weights: algorithm 2, 2 MiB\n"), std::string::npos) << chosen;
  EXPECT_NE(chosen.find("fc1 forward: algorithm 2b-0-7, 1 MiB\n"), std::string::npos) << chosen;
  EXPECT_TRUE(chosen.ends_with("fc2 evaluation: algorithm 2b-0-7, 1 MiB")) << chosen;
  options.choices = chosen;
  EXPECT_EQ(make_engine(model, options)->choices(), chosen);
}

TEST(Choices, ThatCannotBeAreRefused) {
  const Model model = make_model(ModelKind::kLenet);
  const auto said = [&](const std::string& choices) {
    EngineOptions options = kOptions;
    options.choices = choices;
    const auto made = make_stand_in_engine(model, options);
    return made.ok() ? "" : made.error().message;
  };
  EXPECT_EQ(said("conv1"), "'conv1' is no choice of an algorithm; they look like 'conv1 forward: algorithm 1, 12 MiB'");
  EXPECT_EQ(said("conv9 forward: algorithm 1, 1 MiB"),
            "a choice is given for conv9 forward, which this network does not have");
  for (const char* refused : {"algorithm 0", "algorithm 5", "algorithm 9"})  // does not repeat; not accurate; is none
    EXPECT_EQ(said(std::string("conv2 backward data: ") + refused + ", 1 MiB"),
              std::string("conv2 backward data: ") + refused +
                  ", which is asked for, is none of the deterministic ones of this library and device: algorithm 1; "
                  "algorithm 2");
}

TEST(Memory, IsWhatIsTaken) {
  for (const int batch : {1, 3, 40}) {
    const std::size_t before = stand_in::taken_bytes();
    EngineOptions options = kOptions;
    options.batch = batch;
    const auto engine = make_engine(make_model(ModelKind::kLenet), options);
    EXPECT_EQ(engine->activation_bytes(), stand_in::taken_bytes() - before) << batch;
  }
}

TEST(Memory, IsRefusedBeforeItIsTaken) {
  const Model model = make_model(ModelKind::kLenet);
  const std::size_t needed = make_engine(model)->activation_bytes();
  EngineOptions options = kOptions;
  options.most_activation_bytes = needed;
  EXPECT_EQ(make_engine(model, options)->activation_bytes(), needed);
  options.most_activation_bytes = needed - 1;
  const auto tight = make_stand_in_engine(model, options);
  ASSERT_FALSE(tight.ok());
  EXPECT_EQ(tight.error().kind, ErrorKind::kRefused);
  EXPECT_NE(tight.error().message.find(" needs a workspace of 1 MiB, and 0 MiB are left for it; set micro-batch"),
            std::string::npos)
      << tight.error().message;
  options.most_activation_bytes = 1000;
  const auto refused = make_stand_in_engine(model, options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  for (const char* part : {"the activations of lenet for 3 samples need ", " MiB are left for them; set micro-batch"})
    EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;

  stand_in::free_bytes() = 1000;
  const auto full = make_stand_in_engine(model, kOptions);
  stand_in::free_bytes() = std::size_t{8} << 30;
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().kind, ErrorKind::kRefused);
  EXPECT_NE(full.error().message.find("0 MiB are free on the device"), std::string::npos) << full.error().message;
}

}  // namespace
}  // namespace cuda
}  // namespace tg::engine

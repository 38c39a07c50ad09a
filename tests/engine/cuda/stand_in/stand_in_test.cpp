// The CUDA engine on a device that is not there (device.h): what a GPU would only show as a wrong number. The tests
// that the CPU engine passes run over it as well (CMakeLists.txt); here is what only this engine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <tuple>

#include "engine/cuda/cuda_engine.h"
#include "engine/cuda/trials/trials.h"
#include "engine/micro_batches.h"
#include "engine/models/builder.h"
#include "kernels/cuda/wait.h"
#include "kernels/host_memory_space.h"
#include "tests/engine/cuda/stand_in/device.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/small_networks.h"

#undef make_cpu_engine  // here both engines meet

namespace tg::engine {

Result<std::unique_ptr<Engine>> make_cpu_engine(const Model& model, const EngineOptions& options);

namespace {

Result<std::unique_ptr<Engine>> make_with(Math math, const Model& model, const EngineOptions& options) {
  cuda::stand_in::strict() = math == Math::kFp32;
  return cuda::make_cuda_engine(model, {0, "stand-in", math}, options);
}

// The engine's choices, for all convolutions and all products in the form of this name.
std::string all_in(const std::string& convolutions, const std::string& products, std::string choices) {
  const std::string algorithm = ": algorithm ";
  for (std::size_t at = 0; (at = choices.find(algorithm, at)) != std::string::npos; at += algorithm.size()) {
    const bool product = choices.substr(at, choices.find(',', at) - at).ends_with("-0-7");
    choices.insert(at + 2, product ? products : convolutions);
  }
  return choices;
}

Result<std::unique_ptr<Engine>> make_in_form(Math math, const Model& model, EngineOptions options) {
  auto made = make_with(math, model, options);
  if (!made) return made;
  options.choices =
      all_in(math == Math::kBf16 ? "nhwc bf16 " : "nhwc tf32 ", math == Math::kBf16 ? "bf16 " : "", (*made)->choices());
  return make_with(math, model, options);
}

}  // namespace

// In the tests of the CPU engine this is make_cpu_engine. With TGD_STAND_IN_FORM=nhwc all convolutions are in NHWC:
// what goes wrong on the way there and back is no rounding, and shows in a gradient.
Result<std::unique_ptr<Engine>> make_stand_in_engine(const Model& model, const EngineOptions& options) {
  if (std::getenv("TGD_STAND_IN_FORM") != nullptr) return make_in_form(Math::kTf32, model, options);
  return make_with(Math::kFp32, model, options);
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
      // Gradients that are not complete are not there yet: backward continues behind the sink.
      if (first > 0) {
        EXPECT_EQ(room[model.segments[0].offset], 0.0F) << first;
      }
    });
    EXPECT_EQ(next, 0u);
  }
}

TEST(FrozenSegments, ChangeNoOthersGradient) {
  struct Case {
    ModelKind kind;
    std::vector<std::string> freeze;
  };
  for (const Case& each : {Case{ModelKind::kLenet, {"conv"}}, Case{ModelKind::kLenet, {"fc1.weight"}},
                           Case{ModelKind::kResnet20, {"conv1", "bn1", "layer1", "layer2"}}}) {
    SCOPED_TRACE(each.freeze[0]);
    ModelOptions options{.kind = each.kind};
    if (each.kind == ModelKind::kResnet20) options.input = ImageShape{3, 8, 8};
    const Model model = make_model(options).value();
    options.freeze = each.freeze;
    const Model part = make_model(options).value();
    const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
    const Batch batch = random_batch(model, 3, 4);
    AlignedArray<float> room = flat_array(model);
    const Step whole = take_step(*make_engine(model), parameters, batch, room);
    const auto engine = make_engine(part);
    for (int repeat = 0; repeat < 3; ++repeat) {  // as captured too
      const Step step = take_step(*engine, parameters, batch, room);
      EXPECT_EQ(step.loss, whole.loss);
      EXPECT_EQ(step.measured, whole.measured);
      for (const Segment& segment : part.segments.segments())
        for (std::size_t i = segment.offset; i < segment.offset + segment.element_count && !segment.frozen; ++i)
          ASSERT_EQ(step.gradient[i], whole.gradient[i]) << segment.name;
    }
  }
}

TEST(Forward, ContinuesAfterAGateThrows) {
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

TEST(Backward, ForwardContinuesAfterASinkThrows) {
  const Model model = make_model(ModelKind::kLenet);
  const auto engine = make_engine(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  AlignedArray<float> room = flat_array(model);
  const Step expected = take_step(*engine, parameters, random_batch(model, 3, 4), room);
  engine->forward(parameters.data(), random_batch(model, 3, 9));
  EXPECT_THROW(
      engine->backward(1, room.data(), [](std::size_t, std::size_t) { throw std::runtime_error("view changed"); }),
      std::runtime_error);
  EXPECT_EQ(take_step(*engine, parameters, random_batch(model, 3, 4), room).gradient, expected.gradient);
}

void fill(const Model& model, std::uint64_t seed, Batch& batch) {
  const Batch drawn = random_batch(model, batch.count, seed);
  std::ranges::copy(drawn.images, batch.images.begin());
  batch.labels = drawn.labels;
  batch.first_position = static_cast<std::uint64_t>(batch.count) * seed;
}

// A batch in page-locked memory, where there is some.
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

// Streams run as late as they may, or as soon as they can. Memory that is freed makes all of them run, so what is
// compared with is made first.
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
  kernels::HostMemorySpace space(*kernels::available().back());
  for (const int batch : {9, 8}) {  // in parts of 3, the last of which is shorter
    const auto in_parts = [&] {
      return make_micro_batches(
          make_engine(model_), space, {.batch = batch, .micro_batch = 3},
          batch % 3 == 0 ? nullptr : make_engine(model_, {.batch = batch % 3, .evaluation_batch = 1, .seed = 5}));
    };
    std::vector<Step> expected;
    for (std::uint64_t k = 0; k < kSteps; ++k) expected.push_back(step_of(*in_parts(), k, batch));
    expect_steps(*in_parts(), batch, expected);
  }
}

TEST_P(Prefetching, AShorterLastPartEndsWithItsStep) {
  constexpr int kBatch = 8;
  kernels::HostMemorySpace space(*kernels::available().back());
  bool ends = false;
  int parts = 0;
  const auto in_parts = [&](const std::function<void()>& advanced) {
    return make_micro_batches(make_engine(model_), space, {.batch = kBatch, .micro_batch = 3, .advanced = advanced},
                              make_engine(model_, {.batch = 2, .evaluation_batch = 1, .seed = 5}));
  };
  const Step expected = step_of(*in_parts([] {}), 2, kBatch);
  const auto engine = in_parts([&] {
    if (ends && ++parts == 2) throw std::runtime_error("the order is abandoned");
  });
  Batch batch = locked_batch(model_, 1, kBatch);
  batch.first_position = 2 * kBatch;  // that of the next one
  ends = true;
  EXPECT_THROW(engine->forward(parameters_.data(), batch), std::runtime_error);  // the last part is on its way
  ends = false;
  fill(model_, 2, batch);
  std::fill(room_.begin(), room_.end(), 0.0F);
  expect_same(take_step(*engine, parameters_, batch, room_), expected, 2);
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
  EXPECT_EQ(said("conv1"),
            "'conv1' is not a choice of an algorithm; they look like 'conv1 forward: algorithm 1, 12 MiB'");
  EXPECT_EQ(said("conv9 forward: algorithm 1, 1 MiB"),
            "a choice is given for conv9 forward, which this network does not have");
  // Does not repeat; does not in one kind of arithmetic; is not accurate; is none; is for other arithmetic.
  for (const char* refused : {"algorithm 0", "algorithm 3", "algorithm 5", "algorithm 9", "nhwc tf32 algorithm 1"})
    EXPECT_EQ(said(std::string("conv2 backward data: ") + refused + ", 1 MiB"),
              std::string("conv2 backward data: ") + refused +
                  ", which was requested, is not one of the deterministic algorithms of this library and device: "
                  "algorithm 1; "
                  "algorithm 2");
}

// The size of evaluation's batch changes nothing that is trained, and another machine may choose another.
TEST(Choices, AnUnavailableOneOfEvaluationIsTimedAnew) {
  const Model model = make_model(ModelKind::kLenet);
  EngineOptions options = kOptions;
  options.choices = "conv1 evaluation: algorithm 9, 1 MiB\nfc1 evaluation: algorithm 2b-0-7, 1 MiB";
  const auto engine = make_engine(model, options);
  EXPECT_NE(engine->choices().find("\nconv1 evaluation: algorithm 0, 0 MiB\n"), std::string::npos);
  EXPECT_NE(engine->choices().find("\nfc1 evaluation: algorithm 2b-0-7, 1 MiB\n"), std::string::npos);
  EXPECT_EQ(engine->build(), make_engine(model)->build());
}

// The stand-in has these faults as long as this object lives.
struct Fault {
  explicit Fault(std::vector<int> failing, std::vector<int> uncaptured = {}) {
    stand_in::faults().failing = std::move(failing);
    stand_in::faults().uncaptured = std::move(uncaptured);
  }
  ~Fault() { stand_in::faults() = {}; }
};

std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

TEST(Choices, AreAlgorithmsThatRun) {
  const Model model = make_model(ModelKind::kLenet);
  {
    const Fault fault({0});
    EXPECT_TRUE(make_engine(model)->choices().starts_with("conv1 forward: algorithm 1, 1 MiB\n"));
  }
  const Fault fault({0, 1});
  const auto made = make_stand_in_engine(model, kOptions);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(made.error().message,
            "conv1 forward: none of 2 algorithms ran: algorithm 0: cudnnConvolutionForward: "
            "CUDNN_STATUS_EXECUTION_FAILED");
}

TEST(Trials, TimeEqualLayersOnce) {
  Library library(0, Math::kFp32);
  Trials trials(library, {"", 1 << 20});
  int runs = 0;
  const std::vector<Candidate> candidates(2, {"algorithm 1", 0, [&] { ++runs; }});
  const auto runs_of = [&](const std::string& layer, const std::string& text, const std::string& pass) {
    const int before = runs;
    trials.begin(layer, text);
    trials.choose(layer + pass, candidates);
    return runs - before;
  };
  EXPECT_GT(runs_of("a", "3x3", " forward"), 0);
  EXPECT_EQ(runs_of("b", "3x3", " forward"), 0);
  EXPECT_GT(runs_of("b", "3x3", " backward data"), 0);
  EXPECT_GT(runs_of("c", "5x5", " forward"), 0);
  EXPECT_GT(runs_of("d", "", " forward"), 0);
  EXPECT_GT(runs_of("e", "", " forward"), 0);
  EXPECT_EQ(trials.finish().size(), 6u);
}

// Counts its runs; all that is timed takes that long from then on.
std::function<void()> taking(float milliseconds, int& runs) {
  return [milliseconds, &runs] {
    ++runs;
    stand_in::faults().milliseconds = milliseconds;
  };
}

TEST(Trials, GiveUpSlowCandidates) {
  Library library(0, Math::kFp32);
  Trials trials(library, {"", 1 << 20});
  int fast = 0, slow = 0, faster = 0;
  trials.begin("a", "");
  const std::size_t chosen = trials.choose("a forward", {{"algorithm 0", 0, taking(1, fast)},
                                                         {"algorithm 1", 0, taking(1.6F, slow)},
                                                         {"algorithm 2", 0, taking(0.9F, faster)}});
  stand_in::faults() = {};
  EXPECT_EQ(chosen, 2u);
  EXPECT_EQ(fast, 14);  // once, once captured, three times four
  EXPECT_EQ(slow, 6);
  EXPECT_EQ(faster, 14);
}

TEST(Trials, TimeAnewWhereAnEqualLayerHasOtherAlgorithms) {
  Library library(0, Math::kFp32);
  Trials trials(library, {"", 1 << 20});
  int runs = 0;
  const auto choose = [&](const std::string& layer, const char* one, const char* two) {
    trials.begin(layer, "equal");
    return trials.choose(layer + " forward", {{one, 0, taking(1, runs)}, {two, 0, taking(2, runs)}});
  };
  EXPECT_EQ(choose("a", "algorithm 0", "algorithm 1"), 0u);
  EXPECT_EQ(choose("b", "algorithm 2", "algorithm 3"), 0u);
  EXPECT_EQ(choose("c", "algorithm 1", "algorithm 2"), 1u);
  stand_in::faults() = {};
}

TEST(Trials, EndWithTheDevice) {
  Library library(0, Math::kFp32);
  Trials trials(library, {"", 1 << 20});
  int runs = 0;
  const auto lose = [] { kernels::cuda::fail_on_device("cudaEventQuery: an illegal address"); };
  trials.begin("a", "");
  const std::string said = failure([&] {
    trials.choose("a forward", {{"algorithm 0", 0, lose}, {"algorithm 1", 0, taking(1, runs)}});
  });
  stand_in::faults() = {};
  EXPECT_TRUE(said.starts_with("a forward: algorithm 0: cudaEventQuery: an illegal address (device 0); restart tgd"))
      << said;
  EXPECT_EQ(runs, 0);
}

TEST(Capture, IsPreferred) {
  const Fault fault({}, {0});
  EXPECT_TRUE(make_engine(make_model(ModelKind::kLenet))->choices().starts_with("conv1 forward: algorithm 1, 1 MiB\n"));
}

TEST(Capture, IsNotNeeded) {
  const Model model = make_model(ModelKind::kLenet);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  const Batch batch = random_batch(model, 3, 4);
  AlignedArray<float> room = flat_array(model);
  const Step expected = take_step(*make_engine(model), parameters, batch, room);
  const Fault fault({}, {0, 1, 2});
  const auto engine = make_engine(model);
  const std::size_t launched = stand_in::counts().graph_launches, captures = stand_in::counts().captures;
  EXPECT_EQ(engine->build().find("captured"), std::string::npos);
  for (int step = 0; step < 4; ++step) {
    const Step again = take_step(*engine, parameters, batch, room);
    EXPECT_EQ(again.loss, expected.loss);
    EXPECT_EQ(again.gradient, expected.gradient);
  }
  EXPECT_EQ(stand_in::counts().graph_launches, launched);
  EXPECT_EQ(stand_in::counts().captures, captures + 2);  // tried once
  EXPECT_NE(engine->build().find(", not captured: conv1: cudnnConvolutionForward: "), std::string::npos)
      << engine->build();
  EXPECT_LE(engine->build().size(), 400u) << engine->build();
}

TEST(Failures, NameTheLayer) {
  const Model model = make_model(ModelKind::kLenet);
  const auto engine = make_engine(model);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  const Batch batch = random_batch(model, 3, 4);
  AlignedArray<float> room = flat_array(model);
  {
    const Fault fault({0});
    EXPECT_EQ(failure([&] { engine->forward(parameters.data(), batch); }),
              "conv1: cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED");
  }
  engine->forward(parameters.data(), batch);
  const Fault fault({1});
  EXPECT_EQ(failure([&] { engine->backward(1, room.data(), [](std::size_t, std::size_t) {}); }),
            "conv2: cudnnConvolutionBackwardFilter: CUDNN_STATUS_EXECUTION_FAILED");
}

TEST(Failures, SayWhatToDo) {
  const auto said = [](cudaError_t result) {
    return failure([&] { kernels::cuda::require_success(result, "cudaEventQuery(event)"); });
  };
  EXPECT_EQ(said(cudaErrorInvalidValue), "cudaEventQuery: ? (device 0)");
  EXPECT_TRUE(
      said(cudaErrorIllegalAddress).starts_with("cudaEventQuery: ? (device 0); restart tgd; if it happens again"));
  EXPECT_EQ(failure([] { require_success(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED, "cudnnCreate(handle)"); }),
            "cudnnCreate: ?; reinstall cuDNN 9, all parts of one version (deploy/jobs.md, GPUs)");
  EXPECT_THROW(kernels::cuda::require_success(cudaErrorMemoryAllocation, "cudaStreamCreate"),
               kernels::cuda::OutOfMemory);
}

// This runs in a process of its own: a device that has hung does so for good.
TEST(Failures, EndAWaitForADeviceThatHasHung) {
  const Model model = make_model(ModelKind::kLenet);
  const AlignedArray<float> parameters = random_parameters(model, 0.1F, 1);
  const Batch batch = random_batch(model, 3, 4);
  const auto engine = make_engine(model);
  EXPECT_EXIT(
      {
        stand_in::faults().hung = true;
        const kernels::cuda::Stream stream;
        stand_in::enqueue(stream.get(), [] {});
        const std::string first =
            failure([&] { kernels::cuda::wait_for(stream.get(), std::chrono::seconds(0), "ternarize"); });
        const std::string second = failure([&] { engine->forward(parameters.data(), batch); });
        std::fprintf(stderr, "%s\n%s\n", first.c_str(), second.c_str());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0),
      "device 0 \\(stand-in\\) did not answer for 0 s in ternarize; look at nvidia-smi, and restart tgd\n"
      "device 0 \\(stand-in\\) did not answer for 300 s in a pass over a batch");
}

// Evaluation takes as many samples at once as there is memory for, and never stands in the way of training.
TEST(Memory, IsTrainingsFirst) {
  const Model model = make_model(ModelKind::kLenet);
  EngineOptions options = kOptions;
  options.evaluation_batch = 1;
  const std::size_t needed = make_engine(model, options)->activation_bytes();
  options.evaluation_batch = 5000;
  options.most_activation_bytes = needed + 5000 * sizeof(std::int32_t);
  EXPECT_LE(make_engine(model, options)->activation_bytes(), options.most_activation_bytes);
  options.most_activation_bytes = 0;
  stand_in::free_bytes() = std::size_t{32} << 20;
  const auto small = make_stand_in_engine(model, options);
  stand_in::free_bytes() = std::size_t{8} << 30;
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_LE((*small)->activation_bytes(), std::size_t{32} << 20);
}

// The trials want a weight and a gradient that are not the run's.
TEST(Memory, IncludesTheTrials) {
  const Model model = make_model(ModelKind::kLenet);
  std::size_t largest = 0;
  for (const Segment& segment : model.segments.segments()) largest = std::max(largest, segment.padded_count());
  stand_in::free_bytes() = largest * sizeof(float);
  const auto made = make_stand_in_engine(model, kOptions);
  stand_in::free_bytes() = std::size_t{8} << 30;
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kRefused);
  EXPECT_NE(made.error().message.find(" are free on the device; set micro-batch"), std::string::npos)
      << made.error().message;
}

TEST(Memory, EqualsTheAllocations) {
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

// cuDNN describes no tensor of 2^31 elements.
TEST(Memory, IsRefusedToATensorThatIsTooLarge) {
  const Model model = make_model(ModelKind::kLenet);
  EngineOptions options = kOptions;
  options.batch = 400'000;
  const auto made = make_stand_in_engine(model, options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kRefused);
  EXPECT_NE(made.error().message.find(" samples at most; set micro-batch"), std::string::npos) << made.error().message;
}

TEST(Build, NamesTheVariablesThatOverrideItsArithmetic) {
  const auto engine = make_engine(make_model(ModelKind::kLenet));
  const std::string without = engine->build();
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const std::string with = engine->build();
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
  EXPECT_EQ(with, without + ", NVIDIA_TF32_OVERRIDE=0");
}

// A product has an algorithm without a workspace, too.
TEST(Memory, ThatIsShortLeavesAnAlgorithm) {
  const Model model = make_model(ModelKind::kMlp);
  EngineOptions options = kOptions;
  options.most_activation_bytes = make_engine(model)->activation_bytes() - 1;
  const auto engine = make_engine(model, options);
  EXPECT_NE(engine->choices().find(" forward: algorithm 30, 0 MiB\n"), std::string::npos) << engine->choices();
  EXPECT_EQ(engine->choices().find("2a-0-7"), std::string::npos) << engine->choices();
}

// Every algorithm of every form can be had.
TEST(Forms, AreThereAsTheMathAllowsThem) {
  const Model model = make_model(ModelKind::kLenet);
  const auto offered = [&](Math math) {
    EngineOptions options = kOptions;
    std::string all;
    for (const char* call : {"conv2 forward", "fc1 forward"}) {
      options.choices = std::string(call) + ": none, 0 MiB";
      const std::string said = make_with(math, model, options).error().message;
      all += said.substr(said.find("device: ") + 8) + '\n';
    }
    return all;
  };
  const std::string products = "algorithm 2a-0-7; algorithm 2b-0-7";
  EXPECT_EQ(offered(Math::kFp32), "algorithm 0; algorithm 1\n" + products + '\n');
  const std::string nchw = "algorithm 7; algorithm 0; algorithm 1";
  const std::string in_tf32 = nchw + "; nhwc tf32 algorithm 7; nhwc tf32 algorithm 0; nhwc tf32 algorithm 1";
  EXPECT_EQ(offered(Math::kTf32), in_tf32 + '\n' + products + '\n');
  EXPECT_EQ(offered(Math::kBf16), in_tf32 + "; nhwc bf16 algorithm 7; nhwc bf16 algorithm 0; nhwc bf16 algorithm 1\n" +
                                      products + "; bf16 algorithm 2a-0-7; bf16 algorithm 2b-0-7\n");
  stand_in::knows_nhwc() = false;
  EXPECT_EQ(offered(Math::kBf16), nchw + '\n' + products + "; bf16 algorithm 2a-0-7; bf16 algorithm 2b-0-7\n");
  stand_in::knows_nhwc() = true;
}

double distance(const float* a, const float* b, std::size_t count) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < count; ++i) {
    error += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
    norm += static_cast<double>(b[i]) * b[i];
  }
  return std::sqrt(error / std::max(norm, 1e-30));
}

struct Form {
  const char* name;
  Math math;
  double loss, gradient;  // relative errors allowed
};
// tf32 is not rounded here. bf16 keeps 8 bits: 2^-9 for each factor and each result, of which errors with other
// signs take away the most. What a relu or a maximum lets through may move with it: how far the processor's gradient
// moves where its parameters and images are rounded is allowed twice.
const Form kForms[] = {{"tf32", Math::kTf32, 1e-5, 1e-4}, {"bf16", Math::kBf16, 1e-2, 2e-2}};

// LeNet, and the small networks that have convolutions.
std::vector<SmallNetwork> networks() {
  std::vector<SmallNetwork> all = {{"lenet", [] { return Result<Model>(make_model(ModelKind::kLenet)); }}};
  for (const SmallNetwork& each : small_networks()) {
    const Result<Model> model = each.model();
    if (model.ok() && std::any_of(model->operators.begin(), model->operators.end(), [](const Operator& one) {
          return std::holds_alternative<Convolution>(one.attributes);
        }))
      all.push_back(each);
  }
  return all;
}

class EachForm : public testing::TestWithParam<std::tuple<Form, SmallNetwork>> {};

TEST_P(EachForm, IsNearTheProcessor) {
  const auto& [form, network] = GetParam();
  const Model model = network.model().value();
  const AlignedArray<float> parameters = random_parameters(model, model.name == "lenet" ? 0.05F : 0.5F, 12);
  AlignedArray<float> room = flat_array(model);
  const Batch batch = random_batch(model, 3, 4);
  const auto engine = make_in_form(form.math, model, kOptions).value();
  EXPECT_NE(engine->choices().find(": nhwc " + std::string(form.name) + " algorithm "), std::string::npos)
      << engine->choices();
  EngineOptions options = kOptions;
  options.threads = 1;
  const auto processor = make_cpu_engine(model, options).value();
  const Step want = take_step(*processor, parameters, batch, room);
  AlignedArray<float> rounded = flat_array(model);
  std::ranges::copy(parameters, rounded.begin());
  Batch rounded_batch = random_batch(model, 3, 4);
  if (form.math == Math::kBf16) {
    const auto round = [](float each) {
      return std::bit_cast<float>((std::bit_cast<std::uint32_t>(each) + 0x8000u) & 0xffff0000u);
    };
    std::ranges::transform(rounded, rounded.begin(), round);
    std::ranges::transform(rounded_batch.images, rounded_batch.images.begin(), round);
  }
  const Step moved = take_step(*processor, rounded, rounded_batch, room);
  const double allowed =
      form.gradient + 2 * distance(moved.gradient.data(), want.gradient.data(), want.gradient.size());
  for (int repeat = 0; repeat < 3; ++repeat) {  // also captured, and from the graph
    const Step got = take_step(*engine, parameters, batch, room);
    EXPECT_NEAR(got.loss, want.loss, form.loss * want.loss);
    EXPECT_LE(distance(got.gradient.data(), want.gradient.data(), got.gradient.size()), allowed);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EachForm, testing::Combine(testing::ValuesIn(kForms), testing::ValuesIn(networks())),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
                         });

}  // namespace
}  // namespace cuda
}  // namespace tg::engine

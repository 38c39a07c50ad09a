#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/micro_batches.h"
#include "engine/models/builder.h"
#include "kernels/host_memory_space.h"
#include "tests/engine/random_batch.h"
#include "tests/gpu/checks.h"
#include "tests/gpu/step.h"

namespace tg::gpu {
namespace {

using namespace engine;

constexpr std::uint64_t kSeed = 42, kPosition = 0xffffffffU;
constexpr int kEvaluation = 5;
// The same float32 products in another order; and by another algorithm, since another batch may have another one.
constexpr double kOrderTolerance = 1e-5, kAlgorithmTolerance = 1e-4;

struct Subject {
  Accelerator& accelerator;
  CheckOptions options;
  Engines& engines;
  kernels::MemorySpace& space = accelerator.space();

  EngineOptions engine_options(int batch, std::uint64_t most = 0) const {
    return {
        .threads = 1, .batch = batch, .evaluation_batch = kEvaluation, .seed = kSeed, .most_activation_bytes = most};
  }
  std::unique_ptr<Engine> engine(const Model& model, int batch) const {
    return engines.make(model, engine_options(batch));
  }
};

// A model with its parameters and a batch.
struct Work {
  Work(Model one, int count) : model(std::move(one)), batch(random_batch(model, count, 51)) {
    batch.first_position = kPosition;
    parameters = AlignedArray<float>(model.segments.padded_count());
    initialize(model.segments, 22, parameters.data());
    statistics = AlignedArray<float>(model.statistics.padded_count());
    initialize(model.statistics, 1, statistics.data());
  }
  EvaluationCounts evaluate(Engine& engine, const float* at) const {
    return engine.evaluate(at, model.statistics.size() > 0 ? statistics.data() : nullptr,
                           random_batch(model, kEvaluation, 53));
  }
  Model model;
  Batch batch;
  AlignedArray<float> parameters, statistics;
};

// Convolution, dropout, relu, branches and a batch normalization in a few thousand parameters.
Model mixed() {
  ModelBuilder builder("mixed", {3, 12, 10});
  const std::size_t input = builder.convolution("conv1", {.count = 8, .kernel = 3, .bias = false}, he_parameters(27))
                                .batch_normalization("bn1", {})
                                .relu()
                                .place();
  const std::size_t one = builder.convolution("conv2", {.count = 4, .kernel = 1}, he_parameters(8)).relu().place();
  const std::size_t two = builder.from(input).max_pooling({.kernel = 3, .stride = 1}).place();
  builder.concat({one, two}).max_pooling({.kernel = 2, .stride = 2}).dense("fc1", 40, he_parameters(360)).relu();
  return builder.dropout(0.5).dense("fc2", 7, he_parameters(40)).build().value();
}

// A model without layers that depend on the split of a batch.
Model splittable() {
  return ModelBuilder("splittable", {2, 9, 9})
      .convolution("conv1", {.count = 6, .kernel = 3}, he_parameters(18))
      .relu()
      .max_pooling({2, 2})
      .dense("fc1", 40, he_parameters(150))
      .relu()
      .dropout(0.5)
      .dense("fc2", 5, he_parameters(40))
      .build()
      .value();
}

void same_gradient(const Step& got, const Step& want, const std::string& when) {
  expect(got.loss == want.loss, text("%s: loss %a instead of %a", when.c_str(), got.loss, want.loss));
  const std::size_t i = first_difference<float>(got.gradient.span(), want.gradient.span());
  expect(i == got.gradient.size(), text("%s: element %zu of the gradient has other bits", when.c_str(), i));
}

std::string repeats(const Subject& subject, const Work& work) {
  constexpr int kRepeats = 10;
  const std::unique_ptr<Engine> engine = subject.engine(work.model, work.batch.count);
  const std::unique_ptr<kernels::TensorKernels> kernels = subject.space.make_kernels();
  const kernels::MemoryArray at = copied_to(subject.space, *kernels, work.parameters.span());
  const Step first = step_of(*engine, subject.space, work.parameters.span(), work.batch, 1);
  for (int repeat = 1; repeat < kRepeats; ++repeat) {
    if (repeat % 3 == 0) work.evaluate(*engine, at.floats().address());
    if (repeat % 4 == 0) engine->forward(at.floats().address(), work.batch);  // a forward without a backward
    same_gradient(step_of(*engine, subject.space, work.parameters.span(), work.batch, 1), first,
                  text("repeat %d", repeat));
  }
  // Another engine too, which is given what the first one chose by timing.
  EngineOptions options = subject.engine_options(work.batch.count);
  options.choices = engine->choices();
  const auto other = subject.accelerator.make_engine(work.model, options);
  expect(other.ok(), "no second engine");
  const Step again = step_of(**other, subject.space, work.parameters.span(), work.batch, 1);
  same_gradient(again, first, "another engine with the same choices");
  return text("%d repeats equal, another engine too", kRepeats);
}

// Last segments first, each complete when it is told, all told, padding left alone.
std::string sink(const Subject& subject, const Work& work) {
  const SegmentTable& segments = work.model.segments;
  const std::unique_ptr<Engine> engine = subject.engine(work.model, work.batch.count);
  const std::unique_ptr<kernels::TensorKernels> kernels = subject.space.make_kernels();
  const kernels::MemoryArray at = copied_to(subject.space, *kernels, work.parameters.span());
  kernels::MemoryArray gradient = copied_to(subject.space, *kernels, unwritten(segments).span());
  AlignedArray<float> told(segments.padded_count());
  std::size_t complete_from = segments.size();
  int calls = 0;
  engine->forward(at.floats().address(), work.batch);
  engine->backward(1, gradient.floats().address(), [&](std::size_t first, std::size_t last) {
    expect(last == complete_from && first < last,
           text("segments %zu to %zu were told where %zu was due", first, last, complete_from));
    complete_from = first;
    const std::size_t begin = segments[first].offset;
    const std::size_t count = segments[last - 1].offset + segments[last - 1].padded_count() - begin;
    kernels->copy_out(gradient.floats().subspan(begin, count),
                      std::as_writable_bytes(told.span().subspan(begin, count)));
    ++calls;
  });
  expect(complete_from == 0, text("segments before %zu were never told", complete_from));
  const AlignedArray<float> after = on_host(*kernels, gradient.floats());
  const std::size_t i = first_difference<float>(told.span(), after.span());
  expect(i == after.size(), text("element %zu changed after the sink was told", i));
  for (const Segment& segment : segments.segments())
    for (std::size_t k = 0; k < segment.padded_count(); ++k) {
      const float value = after[segment.offset + k];
      expect(k < segment.element_count ? !std::isnan(value) : value == 0,
             text("%s: element %zu is %g", segment.name.c_str(), k, value));
    }
  return text("%zu segments in %d calls", segments.size(), calls);
}

// Parameters are NaN until the gate has been called for them.
std::string gate(const Subject& subject, const Work& work) {
  const SegmentTable& segments = work.model.segments;
  const std::unique_ptr<Engine> engine = subject.engine(work.model, work.batch.count);
  const std::unique_ptr<kernels::TensorKernels> kernels = subject.space.make_kernels();
  const kernels::MemoryArray right = copied_to(subject.space, *kernels, work.parameters.span());
  const double want = engine->forward(right.floats().address(), work.batch);
  kernels::MemoryArray late = copied_to(subject.space, *kernels, unwritten(segments).span());
  std::size_t asked = 0;
  int calls = 0;
  const double got = engine->forward(late.floats().address(), work.batch, [&](std::size_t first, std::size_t last) {
    expect(first == asked && last > first, text("asked for %zu to %zu where %zu was due", first, last, asked));
    asked = last;
    const std::size_t begin = segments[first].offset;
    const std::size_t count = segments[last - 1].offset + segments[last - 1].padded_count() - begin;
    kernels->copy_in(std::as_bytes(work.parameters.span().subspan(begin, count)), late.floats().subspan(begin, count));
    ++calls;
  });
  expect(asked == segments.size(), text("segments from %zu on were not asked for", asked));
  expect(got == want, text("loss %.9g instead of %.9g: parameters were read before the gate", got, want));
  for (const int at : {0, 1}) {
    bool thrown = false;
    try {
      int call = 0;
      engine->forward(right.floats().address(), work.batch, [&](std::size_t, std::size_t) {
        if (call++ == at) throw std::runtime_error("the run is over");
      });
    } catch (const std::runtime_error& end) {
      thrown = std::string(end.what()) == "the run is over";
    }
    expect(thrown, "what the gate threw did not come through");
    expect(engine->forward(right.floats().address(), work.batch) == want, "another loss after the gate threw");
  }
  return text("%zu segments in %d calls", segments.size(), calls);
}

std::string factor(const Subject& subject, const Work& work) {
  const std::unique_ptr<Engine> engine = subject.engine(work.model, work.batch.count);
  const Step one = step_of(*engine, subject.space, work.parameters.span(), work.batch, 1);
  Step four = step_of(*engine, subject.space, work.parameters.span(), work.batch, 4);
  for (float& each : four.gradient) each /= 4;
  const double error = distance(four.gradient.span(), one.gradient.span());
  expect(error <= kOrderTolerance, text("off by %.1e", error));
  return text("off by %.0e", error);
}

// Two engines at once, each in a thread that did not make it: as alone.
std::string threads(const Subject& subject, const Work& work) {
  std::vector<Step> alone(2), together(2);
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < 2; ++i) engines.push_back(subject.engine(work.model, work.batch.count));
  for (int i = 0; i < 2; ++i) alone[i] = step_of(*engines[i], subject.space, work.parameters.span(), work.batch, 1);
  std::vector<std::string> wrong(2);
  {
    std::vector<std::jthread> running;
    for (int i = 0; i < 2; ++i)
      running.emplace_back([&, i] {
        try {
          for (int repeat = 0; repeat < 5; ++repeat)
            same_gradient(step_of(*engines[i], subject.space, work.parameters.span(), work.batch, 1), alone[i],
                          text("thread %d, repeat %d", i, repeat));
        } catch (const std::exception& error) {
          wrong[i] = error.what();
        }
      });
  }
  for (const std::string& one : wrong) expect(one.empty(), one);
  return "2 threads, 5 steps each";
}

std::string micro_batches(const Subject& subject) {
  const Work work(splittable(), 12);
  const Step whole = step_of(*subject.engine(work.model, 12), subject.space, work.parameters.span(), work.batch, 1);
  double worst = 0;
  for (const int part : {6, 5, 4, 1}) {  // 12 = 5 + 5 + 2
    const std::unique_ptr<Engine> parts =
        make_micro_batches(subject.engine(work.model, part), subject.space, {.batch = 12, .micro_batch = part},
                           12 % part == 0 ? nullptr : subject.engine(work.model, 12 % part));
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Step step = step_of(*parts, subject.space, work.parameters.span(), work.batch, 1);
      const double error = distance(step.gradient.span(), whole.gradient.span());
      expect(error <= kAlgorithmTolerance, text("parts of %d: gradient off by %.1e", part, error));
      expect(std::abs(step.loss - whole.loss) <= kAlgorithmTolerance * whole.loss,
             text("parts of %d: loss %g", part, step.loss));
      worst = std::max(worst, error);
    }
  }
  return text("parts of 6, 5, 4 and 1: gradients off by at most %.0e", worst);
}

// With one sample, the gradient of a bias before dropout is 0 exactly where its feature was dropped.
std::string dropout(const Subject& subject) {
  constexpr int kFeatures = 1000;
  const Work work(ModelBuilder("masks", {3, 2, 2})
                      .dense("fc1", kFeatures, he_parameters(12))
                      .dropout(0.4)
                      .dense("fc2", 5, he_parameters(kFeatures))
                      .build()
                      .value(),
                  1);
  const auto subjects = subject.engine(work.model, 1);
  const auto reference = make_cpu_engine(work.model, subject.engine_options(1)).value();
  kernels::HostMemorySpace host(*kernels::available().front());
  const Segment& bias = work.model.segments[1];
  std::size_t dropped = 0;
  for (const std::uint64_t position : {std::uint64_t{0}, std::uint64_t{7}, kPosition, std::uint64_t{3} << 33}) {
    Batch batch = random_batch(work.model, 1, 51);
    batch.first_position = position;
    const Step got = step_of(*subjects, subject.space, work.parameters.span(), batch, 1);
    const Step want = step_of(*reference, host, work.parameters.span(), batch, 1);
    for (std::size_t i = 0; i < kFeatures; ++i) {
      const bool zero = want.gradient[bias.offset + i] == 0;
      expect((got.gradient[bias.offset + i] == 0) == zero,
             text("position %llu: feature %zu was %s", static_cast<unsigned long long>(position), i,
                  zero ? "kept" : "dropped"));
      dropped += zero;
    }
  }
  expect(dropped > 4 * kFeatures / 3 && dropped < 2 * kFeatures, text("%zu features were dropped", dropped));
  return text("%zu of %d features dropped, the same", dropped, 4 * kFeatures);
}

// An engine that cannot be made is an error that says so, and leaves nothing behind.
std::string limits(const Subject& subject) {
  const Work work(make_model(ModelKind::kLenet), 8);
  const std::size_t needs = subject.engine(work.model, 8)->activation_bytes();
  expect(needs > 0, "no activations");
  const auto refused = subject.accelerator.make_engine(work.model, subject.engine_options(8, 1));
  expect(!refused.ok(), "1 byte was enough for the activations");
  expect(refused.error().kind == ErrorKind::kRefused,
         "the bound on activations is no refusal: " + refused.error().message);
  const auto enough = subject.accelerator.make_engine(work.model, subject.engine_options(8, needs));
  expect(enough.ok(), text("%zu bytes of activations are too little for an engine that said so", needs));
  for (const EngineOptions& odd : {EngineOptions{1, 0, 1}, EngineOptions{1, 1, 0}}) {
    const auto made = subject.accelerator.make_engine(work.model, odd);
    expect(!made.ok() && made.error().kind == ErrorKind::kInvalidJob, "a batch of no samples is no invalid job");
  }
  return text("LeNet, 8 samples: %zu KiB; \"%s\"", needs >> 10, refused.error().message.c_str());
}

// More activations than any device has; the next engine is in order.
std::string out_of_memory(const Subject& subject) {
  constexpr int kFar = 2600;  // samples: ResNet-50's tensors stay below 2^31 elements, and together they are too large
  const auto made = subject.accelerator.make_engine(make_model(ModelKind::kResnet50), subject.engine_options(kFar));
  expect(!made.ok(), text("ResNet-50 with %d samples was made", kFar));
  expect(made.error().kind == ErrorKind::kRefused, "no refusal: " + made.error().message);
  const Work work(make_model(ModelKind::kLenet), 8);
  const Step step = step_of(*subject.engine(work.model, 8), subject.space, work.parameters.span(), work.batch, 1);
  expect(std::isfinite(step.loss), "no loss afterwards");
  return '"' + made.error().message + '"';
}

std::vector<Work> works(bool small) {
  std::vector<Work> all;
  all.emplace_back(mixed(), 6);
  all.emplace_back(make_model(ModelKind::kLenet), small ? 4 : 64);
  if (small) return all;
  all.emplace_back(make_model(ModelKind::kCifarnet), 128);
  all.emplace_back(make_model({.kind = ModelKind::kGooglenet, .input = ImageShape{3, 96, 96}}).value(), 16);
  all.emplace_back(make_model({.kind = ModelKind::kResnet50, .input = ImageShape{3, 96, 96}}).value(), 16);
  all.emplace_back(make_model(ModelKind::kAlexnet), 32);
  return all;
}

}  // namespace

void check_contract(Report& report, Accelerator& accelerator, const CheckOptions& options) {
  Engines engines(accelerator);
  const Subject subject{accelerator, options, engines};
  report.explain([&] { return engines.last(); });
  // These before the many, so that they have their time.
  report.run("contract.micro_batches", [&] { return micro_batches(subject); });
  report.run("contract.dropout", [&] { return dropout(subject); });
  report.run("contract.limits", [&] { return limits(subject); });
  if (!options.stand_in) report.run("contract.out_of_memory", [&] { return out_of_memory(subject); });
  for (const Work& work : works(options.small)) {
    const auto check = [&](const char* name, auto function) {
      report.run(text("contract.%s.%s", name, work.model.name.c_str()), [&] { return function(subject, work); });
    };
    check("repeats", repeats);
    check("sink", sink);
    check("gate", gate);
    check("factor", factor);
    check("threads", threads);
  }
  report.explain({});
}

}  // namespace tg::gpu

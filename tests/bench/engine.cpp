// Training rate of the CPU engine: forward, loss, backward and the momentum update on one fixed random batch, as
// tests/bench/pytorch_compare times PyTorch. Verifies that the loss falls before it times anything.
//
//   tgd_bench_engine --model lenet --batch 64 --threads 1 [--steps 50] [--kernels avx2] [--json]
//
// Run with OMP_WAIT_POLICY=passive, as the daemon does, or without, as PyTorch does; say which.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/optimizer.h"
#include "kernels/kernels.h"

namespace {

using namespace tg;

struct Options {
  ModelKind model = ModelKind::kLenet;
  int batch = 64;
  int threads = 1;
  int steps = 50;
  std::string kernels = "auto";  // for the update; oneDNN's are limited by ONEDNN_MAX_CPU_ISA
  bool json = false;
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "tgd_bench_engine: %s\n", why.c_str());
  std::exit(1);
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--json") {
      options.json = true;
      continue;
    }
    if (i + 1 == count) fail("no value after " + word);
    const char* value = words[++i];
    if (word == "--model") {
      const std::optional<ModelKind> model = from_word<ModelKind>(value);
      if (!model) fail(std::string("unknown model ") + value);
      options.model = *model;
    } else if (word == "--batch") {
      options.batch = std::atoi(value);
    } else if (word == "--threads") {
      options.threads = std::atoi(value);
    } else if (word == "--steps") {
      options.steps = std::atoi(value);
    } else if (word == "--kernels") {
      options.kernels = value;
    } else {
      fail("unknown option " + word + "; known: --model --batch --threads --steps --kernels --json");
    }
  }
  if (options.steps < 1) fail("--steps must be at least 1");
  return options;
}

// Parameters and momentum twice, as the daemon keeps them: a step reads one and writes the other.
struct State {
  explicit State(std::size_t elements) : parameters(elements), momentum(elements) {}
  AlignedArray<float> parameters, momentum;
};

class Trainer {
 public:
  explicit Trainer(const Options& options)
      : model_(engine::make_model(options.model)),
        engine_(std::move(engine::make_cpu_engine(model_, {options.threads, options.batch, 1})).value()),
        kernels_(kernels::select(options.kernels).value()),
        states_{State(model_.segments.padded_count()), State(model_.segments.padded_count())},
        gradient_(model_.segments.padded_count()) {
    engine::initialize(model_.segments, 1, states_[0].parameters.data());
    std::mt19937_64 random(1);
    std::normal_distribution<float> pixel;
    batch_.count = options.batch;
    batch_.images = AlignedArray<float>(static_cast<std::size_t>(options.batch) * model_.input.elements());
    for (float& each : batch_.images) each = pixel(random);
    for (int i = 0; i < options.batch; ++i) batch_.labels.push_back(static_cast<std::int32_t>(random() % 10));
    optimizer_.schedule.base_rate = 0.001;
  }

  // The mean loss before the update.
  double step() {
    State& from = states_[step_ % 2];
    State& to = states_[(step_ + 1) % 2];
    const double loss = engine_->forward(from.parameters.data(), batch_);
    engine_->backward(1.0F, gradient_.data(), [](std::size_t, std::size_t) {});
    kernels::Update update = engine::update_for_step(optimizer_, step_++);
    update.scale = 1.0F / static_cast<float>(batch_.count);
    kernels_->apply_floats(update, gradient_.span(), {from.parameters.span(), from.momentum.span(), {}},
                           {to.parameters.span(), to.momentum.span(), {}});
    return loss / batch_.count;
  }

  std::string build() const { return engine_->build() + ", kernels " + std::string(kernels_->name); }

 private:
  const engine::Model model_;
  const std::unique_ptr<engine::Engine> engine_;
  const kernels::Kernels* const kernels_;
  State states_[2];
  AlignedArray<float> gradient_;
  engine::Batch batch_;
  engine::OptimizerOptions optimizer_;
  std::uint64_t step_ = 0;
};

double milliseconds_of(Trainer& trainer) {
  const auto start = std::chrono::steady_clock::now();
  trainer.step();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  if (const auto chosen = kernels::select(options.kernels); !chosen.ok()) fail(chosen.error().message);
  Trainer trainer(options);
  const double first = trainer.step();
  double loss = first;
  for (int i = 0; i < 5; ++i) loss = trainer.step();
  if (!(loss < first)) fail("the loss does not fall: " + std::to_string(first) + " to " + std::to_string(loss));

  std::vector<double> times;
  for (int i = 0; i < options.steps; ++i) times.push_back(milliseconds_of(trainer));
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const double rate = options.batch / median * 1e3;
  if (options.json) {
    std::printf(
        "{\"engine\": \"%s\", \"model\": \"%s\", \"batch\": %d, \"threads\": %d, \"steps\": %d, \"median_ms\": %.4f, "
        "\"least_ms\": %.4f, \"samples_per_s\": %.1f}\n",
        trainer.build().c_str(), to_word(options.model), options.batch, options.threads, options.steps, median,
        times[0], rate);
  } else {
    std::printf("%s batch %d (%s): median %.3f ms, least %.3f ms, %.0f samples/s\n", to_word(options.model),
                options.batch, trainer.build().c_str(), median, times[0], rate);
  }
}

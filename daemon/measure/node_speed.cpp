#include "daemon/measure/node_speed.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <vector>

#include "daemon/exchange/worker.h"
#include "daemon/measure/crew_costs.h"
#include "daemon/measure/roofs.h"
#include "daemon/plan/flops.h"
#include "daemon/plan/machine.h"
#include "engine/engine.h"
#include "engine/processors.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// Between them costs are interpolated: gaussian and real gradients, a pair of nodes to half of the most.
constexpr double kZeros[] = {0.68, kExpectedZeros};
constexpr std::size_t kMembers[] = {2, 8, 64};
constexpr std::size_t kCrewMembers = 8;
constexpr std::size_t kSmall = 512u << 10, kLarge = 8u << 20;  // in a core's cache, and beyond any
constexpr std::uint64_t kSeed = 20171204;
constexpr int kRounds = 3;

struct Trained {
  const char* model;
  int batch;
};
constexpr Trained kTrained[] = {{"lenet", 64}, {"cifarnet", 128}};  // with the paper's batches

void fill(engine::Batch& batch, const engine::Model& model, int count) {
  batch.count = count;
  batch.images = AlignedArray<float>(static_cast<std::size_t>(count) * model.input.elements());
  for (std::size_t i = 0; i < batch.images.size(); ++i) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i), 0, 0, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, kSeed, words);
    batch.images[i] = static_cast<float>(words[0] >> 8) * 0x1p-23F - 1.0F;
  }
  for (int i = 0; i < count; ++i) batch.labels.push_back(i % model.classes);
}

Result<schema::ComputeRate> measure_compute(const Trained& trained, int threads) {
  Result<engine::Model> model = engine::make_model(trained.model);
  if (!model) return model.error();
  Result<std::unique_ptr<engine::Engine>> made = engine::make_cpu_engine(*model, {threads, trained.batch, 1});
  if (!made) return made.error();
  engine::Engine& engine = **made;
  AlignedArray<float> parameters(model->segments.padded_count()), gradients(model->segments.padded_count());
  engine::initialize(model->segments, kSeed, parameters.data());
  engine::Batch batch;
  fill(batch, *model, trained.batch);
  std::vector<double> seconds;
  try {
    for (int round = 0; round <= kRounds; ++round) {
      const Clock::time_point start = Clock::now();
      engine.forward(parameters.data(), batch);
      engine.backward(1.0F / static_cast<float>(trained.batch), gradients.data(), [](std::size_t, std::size_t) {});
      // The library compiles its code in the first one.
      if (round > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, std::string("the engine failed: ") + error.what()};
  }
  std::sort(seconds.begin(), seconds.end());
  const double step = seconds[seconds.size() / 2];
  return schema::ComputeRate{trained.model, static_cast<std::uint64_t>(trained.batch), step / trained.batch,
                             training_operations(*model) * trained.batch / step * 1e-9};
}

// How much sooner `workers` threads at once are done with a step's kernels than one.
double crew_speed_up(const kernels::Kernels& kernels, std::size_t workers) {
  const auto step = [](CodecCosts costs) {
    return costs.statistics + costs.ternarize + costs.encode_codes[1] + costs.decode_codes[1] + costs.accumulate +
           costs.decode_sums[1] + costs.apply;
  };
  return step(measure_codec(kernels, kLarge, kCrewMembers, kExpectedZeros, kLarge)) /
         step(measure_crew(kernels, workers, kLarge, kCrewMembers, kExpectedZeros, kLarge));
}

}  // namespace

Status measure_node(const kernels::Kernels& kernels, int threads, schema::BenchReply& bench) {
  bench.kernels = kernels.name;
  bench.cores = static_cast<std::uint64_t>(engine::usable_processors());
  bench.threads = static_cast<std::uint64_t>(threads);
  bench.read_rate = read_rate();
  bench.copy_rate = copy_rate();
  const auto measure = [&](double zeros, std::size_t members, std::size_t elements) {
    const CodecPoint point{zeros, members, elements, measure_codec(kernels, elements, members, zeros, elements)};
    for (schema::KernelRate& rate : rates_of(point)) bench.codec.push_back(std::move(rate));
  };
  for (const double zeros : kZeros)
    for (const std::size_t members : kMembers) measure(zeros, members, kSmall);
  measure(kExpectedZeros, kCrewMembers, kLarge);
  bench.workers = workers_for(bench.threads);
  bench.crew_speed_up = crew_speed_up(kernels, bench.workers);
  for (const Trained& trained : kTrained) {
    Result<schema::ComputeRate> rate = measure_compute(trained, threads);
    if (!rate) return rate.error();
    bench.compute.push_back(std::move(rate).value());
  }
  bench.peak_gflops = peak_gflops(threads);
  return {};
}

}  // namespace tg::daemon

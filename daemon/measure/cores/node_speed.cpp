#include "daemon/measure/cores/node_speed.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "daemon/exchange/pieces/worker.h"
#include "daemon/measure/cores/crew_costs.h"
#include "daemon/measure/cores/large_arrays.h"
#include "daemon/measure/cores/roofs.h"
#include "daemon/plan/flops.h"
#include "daemon/plan/machine.h"
#include "engine/engine.h"
#include "engine/host/processors.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// Between them costs are interpolated: gaussian and real gradients, a pair of nodes to half of the most.
constexpr double kZeros[] = {0.68, kExpectedZeros};
constexpr std::size_t kMembers[] = {2, 8, 64};
constexpr std::size_t kCrewMembers = 8;
// Of small models, whose state a shared cache may hold, and past most; the largest, past all caches, are
// large_elements.
constexpr std::size_t kSmall = 512u << 10, kMiddle = 8u << 20;
constexpr std::uint64_t kSeed = 20171204;
constexpr int kRounds = 3;

struct Trained {
  const char* model;
  int batch;
};
constexpr Trained kTrained[] = {{"lenet", 64}, {"cifarnet", 128}};  // with the paper's batches

Error stopped() { return {ErrorKind::kRefused, "the measurement was stopped"}; }

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

Result<schema::ComputeRate> measure_compute(const Trained& trained, int threads, const std::stop_token& stop) {
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
  for (int round = 0; round <= kRounds; ++round) {
    if (stop.stop_requested()) return stopped();
    const Clock::time_point start = Clock::now();
    engine.forward(parameters.data(), batch);
    engine.backward(1.0F / static_cast<float>(trained.batch), gradients.data(), [](std::size_t, std::size_t) {});
    // The library compiles its code in the first one.
    if (round > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(seconds.begin(), seconds.end());
  const double step = seconds[seconds.size() / 2];
  return schema::ComputeRate{trained.model, static_cast<std::uint64_t>(trained.batch), step / trained.batch,
                             training_operations(*model) * trained.batch / step * 1e-9};
}

double step_seconds(const CodecCosts& costs) {
  return costs.statistics + costs.ternarize + costs.encode_codes[1] + costs.decode_codes[1] + costs.accumulate +
         costs.decode_sums[1] + costs.apply;
}

Status measure_all(const NodeUnderTest& node, schema::BenchReply& bench) {
  const Result<std::size_t> large = large_elements(last_cache_bytes(), node.memory_bytes);
  if (!large) return large.error();
  bench.kernels = node.kernels.name;
  bench.cores = static_cast<std::uint64_t>(engine::usable_processors());
  bench.threads = static_cast<std::uint64_t>(node.threads);
  bench.workers = workers_for(bench.threads);
  bench.read_rate = read_rate(*large, node.stop);
  bench.copy_rate = copy_rate(*large, node.stop);
  const auto measure = [&](double zeros, std::size_t members, std::size_t elements) {
    const CodecCosts costs =
        measure_codec(node.kernels, elements, members, zeros, {.most_elements = elements, .stop = node.stop});
    if (node.stop.stop_requested()) return costs;
    for (schema::KernelRate& rate : rates_of({zeros, members, elements, costs})) bench.codec.push_back(std::move(rate));
    return costs;
  };
  for (const double zeros : kZeros)
    for (const std::size_t members : kMembers) measure(zeros, members, kSmall);
  if (kMiddle < *large) measure(kExpectedZeros, kCrewMembers, kMiddle);
  const CodecCosts one = measure(kExpectedZeros, kCrewMembers, *large);
  const CodecCosts crew = measure_crew(node.kernels, bench.workers, *large, kCrewMembers, kExpectedZeros,
                                       {.most_elements = *large, .stop = node.stop});
  if (node.stop.stop_requested()) return stopped();
  bench.crew_speed_up = step_seconds(one) / step_seconds(crew);
  for (const Trained& trained : kTrained) {
    Result<schema::ComputeRate> rate = measure_compute(trained, node.threads, node.stop);
    if (!rate) return rate.error();
    bench.compute.push_back(std::move(rate).value());
  }
  bench.peak_gflops = peak_gflops(node.threads);
  return {};
}

}  // namespace

Status measure_node(const NodeUnderTest& node, schema::BenchReply& bench) {
  try {
    return measure_all(node, bench);
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed,
                 "there was not enough memory to measure with; stop what else runs on that machine and repeat it"};
  } catch (const std::exception& error) {
    return Error{ErrorKind::kFailed, std::string("the measurement failed: ") + error.what()};
  }
}

}  // namespace tg::daemon

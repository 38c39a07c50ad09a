#include "daemon/forecast/bench/node_speed.h"

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "daemon/forecast/bench/codec_timer.h"
#include "daemon/forecast/bench/crew_costs.h"
#include "daemon/forecast/bench/large_arrays.h"
#include "daemon/forecast/bench/roofs.h"
#include "daemon/forecast/flops.h"
#include "daemon/forecast/machine.h"
#include "daemon/step/worker.h"
#include "engine/engine.h"
#include "engine/host/processors.h"
#include "kernels/base/median.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

// Between them costs are interpolated: gaussian and real gradients, a pair of nodes to half of the most. What sums cost
// rises steepest between the smallest numbers of members.
constexpr double kZeros[] = {0.68, kExpectedZeros};
constexpr std::size_t kMembers[] = {2, 4, 8, 64};
constexpr std::size_t kCrewMembers = 8;
// Of small models, whose state a shared cache may hold, and past most; the largest, past all caches, are
// large_elements.
constexpr std::size_t kSmall = 512u << 10, kMiddle = 8u << 20;
constexpr std::uint64_t kSeed = 20171204;
constexpr int kRounds = 9, kWarmRounds = 2, kComputeRounds = 3;

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
  for (int round = 0; round <= kComputeRounds; ++round) {
    if (stop.stop_requested()) return stopped();
    const Clock::time_point start = Clock::now();
    engine.forward(parameters.data(), batch);
    engine.backward(1.0F / static_cast<float>(trained.batch), gradients.data(), [](std::size_t, std::size_t) {});
    // The library compiles its code in the first one.
    if (round > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double step = median(std::move(seconds));
  return schema::ComputeRate{trained.model, static_cast<std::uint64_t>(trained.batch), step / trained.batch,
                             training_operations(*model) * trained.batch / step * 1e-9};
}

double step_seconds(const CodecCosts& costs) {
  return costs.statistics + costs.ternarize + costs.encode_codes[1] + costs.decode_codes[1] + costs.accumulate +
         costs.decode_sums[1] + costs.apply;
}

struct Point {
  CodecPoint place;  // without costs
  CodecTimer timer;
};

// Roofs and kernels on one thread, all in turns: their ratios are of the same seconds. Medians of the rounds.
struct OneThread {
  double read_rate = 0, copy_rate = 0;
  std::vector<CodecPoint> points;  // those of the largest arrays last
};

// All points share the largest one's arrays, but for gradients of other zeros.
Result<OneThread> measure_one_thread(const NodeUnderTest& node, std::size_t large) {
  AlignedArray<float> gradients[std::size(kZeros)], parameters_from, parameters_to, slot_from, slot_to;
  for (std::size_t z = 0; z < std::size(kZeros); ++z) {
    if (node.stop.stop_requested()) return stopped();  // drawing and allocating take their time
    gradients[z] = AlignedArray<float>(kZeros[z] == kExpectedZeros ? large : kSmall);
    draw_gradient(gradients[z].span(), kZeros[z]);
  }
  for (AlignedArray<float>* const array : {&parameters_from, &parameters_to, &slot_from, &slot_to}) {
    if (node.stop.stop_requested()) return stopped();
    *array = AlignedArray<float>(large);
  }
  std::vector<Point> points;
  const auto add = [&](std::size_t z, std::size_t members, std::size_t elements) {
    const CodecArrays arrays{gradients[z].span(), parameters_from.span(), parameters_to.span(), slot_from.span(),
                             slot_to.span()};
    points.push_back(
        {{kZeros[z], members, elements, {}},
         {node.kernels, {members, elements >= kernels::kPastCaches}, arrays.first(elements), {.stop = node.stop}}});
  };
  constexpr std::size_t kExpected = std::size(kZeros) - 1;
  static_assert(kZeros[kExpected] == kExpectedZeros);
  for (std::size_t z = 0; z < std::size(kZeros); ++z)
    for (const std::size_t members : kMembers) add(z, members, kSmall);
  if (kMiddle < large) add(kExpected, kCrewMembers, kMiddle);
  add(kExpected, kCrewMembers, large);
  std::vector<double> read, copied;
  for (int round = 0; round < kRounds; ++round) {
    for (Point& point : points) {
      if (point.place.elements == kSmall)  // the largest arrays have emptied the caches
        for (int warm = 0; warm < kWarmRounds; ++warm) point.timer.warm_round();
      point.timer.round();
    }
    if (node.stop.stop_requested()) return stopped();
    read.push_back(read_rate(gradients[kExpected].span()));
    copied.push_back(copy_rate(parameters_from.span(), parameters_to.span()));
  }
  OneThread measured{median(std::move(read)), median(std::move(copied)), {}};
  for (Point& point : points) {
    point.place.costs = point.timer.medians();
    measured.points.push_back(point.place);
  }
  return measured;
}

Status measure_all(const NodeUnderTest& node, schema::BenchReply& bench) {
  const Result<std::size_t> large = large_elements(last_cache_bytes(), node.memory_bytes);
  if (!large) return large.error();
  bench.kernels = node.kernels.name;
  bench.cores = static_cast<std::uint64_t>(engine::usable_processors());
  bench.threads = static_cast<std::uint64_t>(node.threads);
  bench.workers = workers_for(bench.threads);
  const Result<OneThread> one = measure_one_thread(node, *large);
  if (!one) return one.error();
  bench.read_rate = one->read_rate;
  bench.copy_rate = one->copy_rate;
  for (const CodecPoint& point : one->points)
    for (schema::KernelRate& rate : rates_of(point)) bench.codec.push_back(std::move(rate));
  bench.crew_speed_up = 1;
  if (bench.workers > 1) {
    const CodecCosts crew =
        measure_crew(node.kernels, bench.workers, {*large, kCrewMembers, kExpectedZeros, *large}, {.stop = node.stop});
    if (node.stop.stop_requested()) return stopped();
    bench.crew_speed_up = step_seconds(one->points.back().costs) / step_seconds(crew);
  }
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

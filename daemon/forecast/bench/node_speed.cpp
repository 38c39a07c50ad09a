#include "daemon/forecast/bench/node_speed.h"

#include <chrono>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "daemon/forecast/bench/kernel_timer.h"
#include "engine/engine.h"
#include "engine/graph/flops.h"
#include "kernels/base/median.h"
#include "kernels/memory_array.h"

namespace tg::daemon {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kComputeRounds = 3;

constexpr std::uint64_t kNeededBytes = kTimedBytes + (96u << 20);  // the engine takes less than the rest

struct Trained {
  ModelKind model;
  int batch;
};
constexpr Trained kTrained[] = {{ModelKind::kLenet, 64}, {ModelKind::kCifarnet, 128}};  // with the paper's batches

Error stopped() { return {ErrorKind::kRefused, "the measurement was stopped"}; }

void fill(engine::Batch& batch, const engine::Model& model, int count, kernels::MemorySpace& space) {
  batch.count = count;
  batch.images = space.allocate_host(static_cast<std::size_t>(count) * model.input.elements());
  for (std::size_t i = 0; i < batch.images.size(); ++i) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i), 0, 0, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, kTimedSeed, words);
    batch.images[i] = static_cast<float>(words[0] >> 8) * 0x1p-23F - 1.0F;
  }
  for (int i = 0; i < count; ++i) batch.labels.push_back(i % model.classes);
}

Result<schema::ComputeRate> measure_compute(const Trained& trained, const NodeUnderTest& node) {
  const engine::Model model = engine::make_model(trained.model);
  Result<std::unique_ptr<engine::Engine>> made = node.compute.make_engine(model, {node.threads, trained.batch, 1});
  if (!made) return made.error();
  engine::Engine& engine = **made;
  const std::size_t count = model.segments.padded_count();
  kernels::MemoryArray parameters(node.compute.space(), count), gradients(node.compute.space(), count);
  AlignedArray<float> initial(count);
  engine::initialize(model.segments, kTimedSeed, initial.data());
  node.compute.space().make_kernels()->copy_in(std::as_bytes(initial.span()), parameters.floats());
  engine::Batch batch;
  fill(batch, model, trained.batch, node.compute.space());
  std::vector<double> seconds;
  for (int round = 0; round <= kComputeRounds; ++round) {
    if (node.stop.stop_requested()) return stopped();
    const Clock::time_point start = Clock::now();
    engine.forward(parameters.floats().address(), batch);
    engine.backward(1.0F / static_cast<float>(trained.batch), gradients.floats().address(),
                    [](std::size_t, std::size_t) {});
    // The library compiles its code in the first one.
    if (round > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double step = median(std::move(seconds));
  return schema::ComputeRate{model.name, static_cast<std::uint64_t>(trained.batch), step / trained.batch,
                             training_operations(model) * trained.batch / step * 1e-9};
}

Status measure_all(const NodeUnderTest& node, schema::BenchReply& bench) {
  if (node.memory_bytes < kNeededBytes)
    return Error{ErrorKind::kRefused, "measuring needs " + std::to_string(kNeededBytes >> 20) + " MiB of memory and " +
                                          std::to_string(node.memory_bytes >> 20) +
                                          " MiB may be used there; stop what else runs on that machine, or raise "
                                          "memory-mib where this node's configuration sets it"};
  const KernelCosts costs = time_kernels(node.kernels, node.compute.space(), node.stop);
  if (node.stop.stop_requested()) return stopped();
  bench.codec = rates_of(costs);
  for (const Trained& trained : kTrained) {
    Result<schema::ComputeRate> rate = measure_compute(trained, node);
    if (!rate) return rate.error();
    bench.compute.push_back(std::move(rate).value());
  }
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

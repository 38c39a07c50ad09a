#include "daemon/forecast/predict.h"

#include <algorithm>

#include "daemon/membership/choose_exchange.h"
#include "daemon/step/job_data.h"
#include "daemon/step/job_layout.h"
#include "daemon/step/worker.h"
#include "engine/graph/flops.h"
#include "kernels/base/check.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;
using schema::Outcome;

struct Batch {
  std::uint64_t global = 0, local = 0;
};

Batch batch_of(const Task& task, std::size_t nodes) {
  const std::uint64_t asked = schema::resolved_global_batch(task.job, nodes);
  Batch batch{std::max<std::uint64_t>(asked, nodes), 0};
  batch.local = nodes == task.weighted_nodes ? task.own_samples : (batch.global + nodes - 1) / nodes;
  return batch;
}

// Seconds of forward and backward of one sample on one thread or on the device, 0 where gradients are replayed.
double sample_seconds(const Task& task, const Machine& machine) {
  if (task.job.compute == schema::Compute::kReplay || machine.compute.empty()) return 0;
  const double threads = machine.on_device ? 1 : machine.threads;
  for (const schema::ComputeRate& rate : machine.compute)
    if (rate.model == task.model.name) return rate.seconds_per_sample * threads;
  double slowest = machine.compute.front().gflops;  // a model that was not measured: at the slower rate of those
  for (const schema::ComputeRate& rate : machine.compute) slowest = std::min(slowest, rate.gflops);
  return slowest > 0 ? training_operations(task.model) / (slowest * 1e9) * threads : 0;
}

// Where somebody has set fewer threads than the node has cores, that many compute; else all cores do.
double computing_cores(const Task& task, const Machine& machine, double cores) {
  if (task.job.threads > 0) return std::min(static_cast<double>(task.job.threads), cores);
  return machine.threads < machine.cores ? std::min(machine.threads, cores) : cores;
}

// For the asked node as it is, the threads that a start would count; for a node with other cores, those that compute.
double threads_of(const Task& task, const Machine& machine, double cores) {
  if (task.job.threads > 0) return static_cast<double>(task.job.threads);
  return cores == machine.cores ? machine.threads : computing_cores(task, machine, cores);
}

Computing computing_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  const double cores = computing_cores(task, machine, where.cores);
  const double seconds = sample_seconds(task, machine) * static_cast<double>(batch_of(task, nodes).local);
  const auto workers = static_cast<double>(workers_for(static_cast<std::uint64_t>(cores)));
  if (machine.on_device) return {0, seconds, workers};
  return {seconds, seconds / cores, workers};
}

Layout layout_of(const Task& task, std::size_t nodes, const schema::Commit& choice) {
  // Beyond what a run allows the chunks are those of the largest run.
  Layout layout =
      make_layout(task.model.segments, layout_options(task.job, std::min(nodes, schema::kMaxMembers), choice));
  layout.members = nodes;
  return layout;
}

Outcome outcome_of(const StepModel& step, const Machine& machine, std::uint64_t global_batch) {
  Outcome outcome;
  outcome.sent_bytes = step.sent_bits / 8;
  outcome.compute = step.compute;
  outcome.processor = step.processor() / step.share();
  for (const StepModel::Bucket& bucket : step.buckets) outcome.wire += bucket.wire;
  outcome.step = step.step_seconds(machine.trip_seconds);
  outcome.samples_per_second = outcome.step > 0 ? static_cast<double>(global_batch) / outcome.step : 0;
  return outcome;
}

}  // namespace

Result<Task> make_task(const schema::JobSpec& job, const std::optional<engine::ModelOptions>& known) {
  Result<engine::Model> model = engine::make_model(known ? *known : expected_model(job));
  if (!model && !known) model = engine::make_model(model_options(job));
  if (!model) return model.error();
  return Task{std::move(model).value(), job, 0, 0};
}

schema::Commit choose_as_start(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  schema::Vote vote;
  vote.link_mbps = nodes > 1 ? where.payload_mbps : 0;
  vote.workers =
      static_cast<std::uint16_t>(workers_for(static_cast<std::uint64_t>(threads_of(task, machine, where.cores))));
  return choose_exchange(asked_of(task.job), std::vector<schema::Vote>(nodes, vote)).commit;
}

StepModel model_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                   ExchangeKind exchange, Coding coding) {
  const double link = task.job.link_mbps > 0 ? task.job.link_mbps : where.payload_mbps;
  const Layout layout = layout_of(task, nodes, {exchange, coding, window_for(link, nodes), chunk_for(link)});
  return model_step(layout, task.model, machine, where, computing_of(task, machine, where, nodes));
}

Outcome predict(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                ExchangeKind exchange, Coding coding) {
  return outcome_of(model_of(task, machine, where, nodes, exchange, coding), machine, batch_of(task, nodes).global);
}

Outcome predict_ring(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  const Layout layout = layout_of(task, nodes, {ExchangeKind::kDirect, Coding::kRaw});
  return outcome_of(model_ring(layout, task.model, where, computing_of(task, machine, where, nodes)), machine,
                    batch_of(task, nodes).global);
}

schema::ForecastRow predict_row(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                                Coding coding) {
  TG_CHECK(nodes >= 1 && nodes <= schema::kMaxForecastNodes, nodes);
  const Batch batch = batch_of(task, nodes);
  schema::ForecastRow row;
  row.nodes = nodes;
  row.local_batch = batch.local;
  row.global_batch = batch.global;
  row.direct = predict(task, machine, where, nodes, ExchangeKind::kDirect, coding);
  row.sharded = predict(task, machine, where, nodes, ExchangeKind::kSharded, coding);
  row.ring = predict_ring(task, machine, where, nodes);
  const double alone = predict_ring(task, machine, where, 1).samples_per_second;
  for (Outcome* outcome : {&row.direct, &row.sharded, &row.ring})
    outcome->speed_up = alone > 0 ? outcome->samples_per_second / alone : 0;
  return row;
}

}  // namespace tg::daemon

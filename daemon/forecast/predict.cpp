#include "daemon/forecast/predict.h"

#include <algorithm>

#include "daemon/forecast/flops.h"
#include "daemon/membership/choose_exchange.h"
#include "daemon/step/job_plan.h"
#include "kernels/base/check.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;
using schema::Outcome;

struct Batch {
  std::uint64_t global = 0, local = 0;
  bool too_small = false;  // fewer samples than nodes
};

Batch batch_of(const Task& task, std::size_t nodes) {
  const std::uint64_t asked = schema::resolved_global_batch(task.job, nodes);
  Batch batch{std::max<std::uint64_t>(asked, nodes), 0, asked < nodes};
  batch.local = (batch.global + nodes - 1) / nodes;
  return batch;
}

// Processor seconds of forward and backward of one sample, 0 where gradients are replayed.
double sample_seconds(const Task& task, const Machine& machine) {
  if (task.job.compute == "replay" || machine.compute.empty()) return 0;
  for (const schema::ComputeRate& rate : machine.compute)
    if (rate.model == task.model.name) return rate.seconds_per_sample * machine.threads;
  double slowest = machine.compute.front().gflops;  // a model that was not measured: at the slower rate of those
  for (const schema::ComputeRate& rate : machine.compute) slowest = std::min(slowest, rate.gflops);
  return slowest > 0 ? training_operations(task.model) / (slowest * 1e9) * machine.threads : 0;
}

// Threads below the node's cores are somebody's wish; else all cores compute.
double computing_cores(const Task& task, const Machine& machine, double cores) {
  if (task.job.threads > 0) return std::min(static_cast<double>(task.job.threads), cores);
  return machine.threads < machine.cores ? std::min(machine.threads, cores) : cores;
}

Plan plan_of(const Task& task, std::size_t nodes, const schema::Commit& choice) {
  // Beyond what a run allows the chunks are those of the largest run.
  Plan plan = make_plan(task.model.segments, plan_options(task.job, std::min(nodes, schema::kMostMembers), choice));
  plan.members = nodes;
  return plan;
}

// As ActiveRun::vote makes them. Kernels are timed there on all threads of the exchange, by their best rounds.
std::vector<schema::Vote> votes_of(const Task& task, const Machine& machine, const Surroundings& where,
                                   std::size_t nodes) {
  CodecCosts costs = costs_at(machine, where.zeros, nodes, task.model.segments.parameter_count());
  const double crew = crew_speed_up(machine, computing_cores(task, machine, where.cores));
  for (const KernelCost& kernel : kKernelCosts) *kernel.field(costs) /= crew;
  schema::Vote vote;
  vote.link_mbps = nodes > 1 ? where.payload_mbps : 0;
  for (const schema::Commit& choice : kChoices) {
    const Plan plan = plan_of(task, nodes, choice);
    vote.codec_seconds.push_back(codec_seconds(plan, costs, where.zeros));
    vote.sent_bits.push_back(predict_traffic(plan, where.zeros).sent_bits);
  }
  return std::vector<schema::Vote>(nodes, vote);
}

const char* name_of(Coding coding) { return coding == Coding::kRaw ? "raw" : "entropy"; }

Outcome outcome_of(const StepModel& step, const Machine& machine, std::uint64_t global_batch) {
  const double slowed = machine.cpu_factor / step.share();
  Outcome outcome;
  outcome.sent_bytes = step.sent_bits / 8;
  outcome.compute = step.compute;
  outcome.encode = step.codec.encode * slowed / step.crew;
  outcome.decode = step.codec.decode * slowed / step.crew;
  outcome.apply = step.codec.apply * slowed / step.crew;
  outcome.network = step.codec.network * slowed;
  for (const StepModel::Bucket& bucket : step.buckets) outcome.wire += bucket.wire;
  outcome.trips = step.trips * machine.trip_seconds / step.share();
  outcome.step = step.step_seconds(machine.cpu_factor, machine.trip_seconds);
  outcome.samples_per_second = outcome.step > 0 ? static_cast<double>(global_batch) / outcome.step : 0;
  return outcome;
}

struct Computing {
  double processor = 0, seconds = 0;
};

Computing computing_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  const double processor = sample_seconds(task, machine) * static_cast<double>(batch_of(task, nodes).local);
  return {processor, processor / computing_cores(task, machine, where.cores)};
}

// From which N on the ring is faster; 0 if nowhere up to kMostPlannedNodes.
template <class RingWins>
std::uint64_t overtakes(RingWins ring_wins) {
  std::size_t before = 1;
  for (std::size_t nodes = 2; nodes <= schema::kMostPlannedNodes; before = nodes, nodes *= 2) {
    if (!ring_wins(nodes)) continue;
    std::size_t wins = nodes;
    while (wins - before > 1) {
      const std::size_t middle = (before + wins) / 2;
      (ring_wins(middle) ? wins : before) = middle;
    }
    return wins;
  }
  return 0;
}

void assume(const Task& task, const Machine& machine, schema::ForecastReply& reply) {
  const bool replay = task.job.compute == "replay";
  std::vector<std::string>& list = reply.assumptions;
  list.push_back(replay ? "zeros: the job's replay-zeros; nothing is computed"
                        : "zeros: 0.92 of all codes, as LeNet and CifarNet have at clip-sigma 2.5");
  list.push_back("all nodes are like " + reply.node + ", the link is full duplex and no switch port is shared");
  list.push_back("TCP payload is 94.1 % of a line's rate that is told; a measured rate is payload already");
  if (!replay) {
    list.push_back("seconds per sample do not depend on the batch, and fall with the cores");
    list.push_back("one node alone computes the whole batch and exchanges nothing");
  }
  list.push_back(
      "exchange and codings are chosen as a start does, by kernels and link; a calibration corrects steps only");
  list.push_back("the float32 ring runs at line rate without any delay per hop and adds at no cost");
  if (reply.calibration_rows == 0)
    list.push_back("not calibrated: processor times of the kernels alone, a trip is half the measured round trip");
  if (machine.threads < machine.cores) list.push_back("computing stays on the node's own number of threads");
}

}  // namespace

Result<Task> make_task(const schema::JobSpec& job) {
  Result<engine::Model> model = engine::make_model(job.model);
  if (!model) return model.error();
  if (job.compute == "train" && !model->trainable())
    return Error{ErrorKind::kInvalidJob, "model = " + job.model +
                                             " cannot be trained yet, only its gradients can be replayed; add --set "
                                             "compute=replay, or choose another model"};
  return Task{std::move(model).value(), job};
}

StepModel model_of(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                   const schema::Commit& choice) {
  const Computing computing = computing_of(task, machine, where, nodes);
  schema::Commit started = choice;
  const double link = task.job.link_mbps > 0 ? task.job.link_mbps : where.payload_mbps;
  started.chunk_parameters = chunk_for(link);
  started.window_bytes = window_for(link, nodes);
  StepModel step =
      model_step(plan_of(task, nodes, started), task.model, machine, where, computing.processor, computing.seconds);
  step.crew = crew_speed_up(machine, computing_cores(task, machine, where.cores));
  return step;
}

schema::Commit choose_as_start(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  schema::Commit choice = choose_exchange(asked_of(task.job), votes_of(task, machine, where, nodes));
  if (nodes < 2) choice.exchange = ExchangeKind::kDirect;
  return choice;
}

Outcome predict(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                ExchangeKind exchange) {
  Asked asked = asked_of(task.job);
  asked.exchange = exchange == ExchangeKind::kDirect ? "direct" : "sharded";
  const schema::Commit choice = choose_exchange(asked, votes_of(task, machine, where, nodes));
  Outcome outcome = outcome_of(model_of(task, machine, where, nodes, choice), machine, batch_of(task, nodes).global);
  outcome.coding = name_of(choice.coding);
  return outcome;
}

Outcome predict_ring(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes) {
  const Computing computing = computing_of(task, machine, where, nodes);
  const Plan plan = plan_of(task, nodes, {ExchangeKind::kDirect, Coding::kRaw});
  return outcome_of(model_ring(plan, task.model, where, computing.processor, computing.seconds), machine,
                    batch_of(task, nodes).global);
}

schema::ForecastRow predict_row(const Task& task, const Machine& machine, const Surroundings& where,
                                std::size_t nodes) {
  TG_CHECK(nodes >= 1 && nodes <= schema::kMostPlannedNodes, nodes);
  const Batch batch = batch_of(task, nodes);
  schema::ForecastRow row;
  row.nodes = nodes;
  row.local_batch = batch.local;
  row.global_batch = batch.global;
  row.beyond_members = nodes > schema::kMostMembers;
  row.beyond_batch = batch.too_small && task.job.compute != "replay";
  row.direct = predict(task, machine, where, nodes, ExchangeKind::kDirect);
  row.sharded = predict(task, machine, where, nodes, ExchangeKind::kSharded);
  row.ring = predict_ring(task, machine, where, nodes);
  const double alone = predict_ring(task, machine, where, 1).samples_per_second;
  for (Outcome* outcome : {&row.direct, &row.sharded, &row.ring})
    outcome->speed_up = alone > 0 ? outcome->samples_per_second / alone : 0;
  return row;
}

void predict_all(const Task& task, const Machine& machine, const Surroundings& where, std::size_t nodes,
                 schema::ForecastReply& reply) {
  reply.model = task.model.name;
  reply.compute = task.job.compute;
  reply.parameters = task.model.segments.parameter_count();
  reply.payload_mbps = where.payload_mbps;
  reply.cores = where.cores;
  reply.zeros = where.zeros;
  reply.trip_seconds = machine.trip_seconds;
  reply.cpu_factor = machine.cpu_factor;
  reply.asked = predict_row(task, machine, where, nodes);
  for (std::size_t n = 1; n <= schema::kMostPlannedNodes; n *= 2)
    reply.table.push_back(predict_row(task, machine, where, n));
  const auto loses = [&](ExchangeKind exchange) {
    return overtakes([&](std::size_t n) {
      return predict_ring(task, machine, where, n).step < predict(task, machine, where, n, exchange).step;
    });
  };
  reply.direct_loses = loses(ExchangeKind::kDirect);
  reply.sharded_loses = loses(ExchangeKind::kSharded);
  const schema::Commit chosen = choose_as_start(task, machine, where, nodes);
  reply.exchange = chosen.exchange == ExchangeKind::kDirect ? "direct" : "sharded";
  reply.coding = name_of(chosen.coding);
  assume(task, machine, reply);
}

}  // namespace tg::daemon

#include "daemon/forecast/forecast.h"

#include <algorithm>

#include "daemon/forecast/predict.h"
#include "daemon/forecast/zeros.h"
#include "daemon/membership/choose_exchange.h"
#include "schema/limits.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

using schema::ExchangeKind;

std::vector<std::string> assumptions_of(const Task& task, const Machine& machine, const schema::BenchReply& measured) {
  const bool replay = task.job.compute == schema::Compute::kReplay;
  std::vector<std::string> list;
  list.push_back("zeros: " + zeros_of(task.job).source + (replay ? "; nothing is computed" : ""));
  if (measured.measured_ms == 0)
    list.push_back("the kernels' speeds are assumed, not measured; tgctl bench measures them");
  list.push_back("all nodes are like " + measured.node + ", the link is full duplex and no switch port is shared");
  if (!replay)
    list.push_back(machine.on_device
                       ? "seconds per sample do not depend on the batch: a GPU takes longer with fewer samples a node"
                       : "seconds per sample do not depend on the batch, and fall with the cores");
  list.push_back("the float32 ring runs at line rate without any delay per hop and adds at no cost");
  return list;
}

std::string about_data(const Question& question, const Task& task) {
  const std::string taken = std::to_string(task.model.input.channels) + "x" + std::to_string(task.model.input.height) +
                            "x" + std::to_string(task.model.input.width) + " and " +
                            std::to_string(task.model.classes) + " classes";
  const std::string text =
      question.model ? "data of " + taken + ": " + question.data
                     : "data are taken to be of " + taken + "; a start takes what they are, and " + question.data;
  return schema::clip_text(text, schema::kMaxAssumptionBytes);
}

}  // namespace

Status check(const Question& question) {
  const schema::JobSpec& job = question.job;
  if (const Status valid = schema::validate_job(job, 0); !valid) return valid;
  const std::uint64_t batch = schema::resolved_global_batch(job, question.nodes);
  if (job.compute != schema::Compute::kReplay && batch < question.nodes)
    return Error{ErrorKind::kInvalidJob, "global-batch = " + std::to_string(batch) + " is less than " +
                                             std::to_string(question.nodes) +
                                             " nodes: each needs a sample of every step; add --set global-batch=" +
                                             std::to_string(question.nodes) + " or --set batch-per-node=1, or more"};
  const Result<Task> task = make_task(job, question.model);
  return task ? Status() : Status(task.error());
}

Result<Forecast> forecast(const Question& question, const schema::BenchReply& measured) {
  if (const Status valid = check(question); !valid) return valid.error();
  Task task = make_task(question.job, question.model).value();
  if (question.own_samples > 0) {
    task.weighted_nodes = question.nodes;
    task.own_samples = question.own_samples;
  }
  if (question.line_mbps > 0) task.job.link_mbps = question.line_mbps;
  const Result<Machine> machine = machine_of(measured);
  if (!machine) return machine.error();
  const ExchangePreference asked = exchange_preference(task.job);
  Surroundings where;
  where.payload_mbps = asked.link_mbps > 0 ? asked.link_mbps * kPayloadShare : measured.link_mbps;
  where.cores = question.cores > 0 ? question.cores : machine->cores;
  where.zeros = zeros_of(task.job).share;
  if (where.payload_mbps <= 0 && (question.nodes > 1 || question.table))
    return Error{ErrorKind::kUsage, "no peer of " + measured.node +
                                        " answered when its link was measured; say its rate: plan --link 1Gbps, or "
                                        "link-mbps = 1000 in the job"};
  const schema::Commit chosen =
      question.chosen ? *question.chosen : choose_as_start(task, *machine, where, question.nodes);
  const auto coding_at = [&](std::size_t nodes) {
    return question.chosen ? chosen.coding : choose_as_start(task, *machine, where, nodes).coding;
  };
  const auto row = [&](std::size_t nodes) { return predict_row(task, *machine, where, nodes, coding_at(nodes)); };
  schema::ForecastReply reply;
  reply.node = measured.node;
  reply.model = task.model.name;
  reply.compute = task.job.compute;
  reply.parameters = task.model.segments.parameter_count();
  reply.line_mbps = asked.link_mbps;
  reply.payload_mbps = where.payload_mbps;
  reply.cores = where.cores;
  reply.measured_ms = measured.measured_ms;
  reply.exchange = to_word(chosen.exchange);
  reply.coding = to_word(chosen.coding);
  reply.asked = row(question.nodes);
  reply.assumptions = assumptions_of(task, *machine, measured);
  if (!question.data.empty()) reply.assumptions.insert(reply.assumptions.begin(), about_data(question, task));
  if (question.own_samples > 0)
    reply.assumptions.push_back("weights split the batch of " + std::to_string(question.nodes) +
                                " nodes, and each computes as long for its part as " + measured.node +
                                " for its own: " + question.uneven);
  if (!question.table) return Forecast{std::move(reply), chosen};
  for (std::size_t n = 1; n <= schema::kMaxForecastNodes; n *= 2) reply.table.push_back(row(n));
  return Forecast{std::move(reply), chosen};
}

schema::BenchReply assumed_bench(const schema::ComputeRate& compute, schema::BenchReply about) {
  about.codec = rates_of(kAssumedCosts);
  about.compute = {compute};
  return about;
}

}  // namespace tg::daemon

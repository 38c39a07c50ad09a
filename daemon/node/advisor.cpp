#include "daemon/node/advisor.h"

#include <utility>

#include "daemon/forecast/bench/bench_file.h"
#include "daemon/forecast/calibrate.h"
#include "daemon/forecast/predict.h"
#include "engine/host/processors.h"

namespace tg::daemon {
namespace {

Error busy_error(const std::string& node) {
  return {ErrorKind::kRefused, node + " cannot measure while a run is on; ask again when it has ended"};
}

// Nodes that a run may not have are predicted all the same, so their number is judged here.
Status check(const schema::JobSpec& job, std::uint64_t nodes) {
  if (const Status valid = schema::validate_job(job, 0); !valid) return valid;
  const std::uint64_t batch = schema::resolved_global_batch(job, nodes);
  if (job.compute == "replay" || batch >= nodes) return {};
  return Error{ErrorKind::kInvalidJob,
               "global-batch = " + std::to_string(batch) + " is less than " + std::to_string(nodes) +
                   " nodes: each needs a sample of every step; add --set global-batch=" + std::to_string(nodes) +
                   " or --set batch-per-node=1, or more"};
}

}  // namespace

void Advisor::bench(std::uint64_t token, const schema::BenchRequest& request, std::uint64_t key, bool busy) {
  if (busy) return control_.reply(token, busy_error(context_.config.node));
  if (bench_)
    return control_.reply(token,
                          Error{ErrorKind::kRefused, context_.config.node + " measures already; ask again soon"});
  token_ = token;
  wanted_.reset();
  bench_ = std::make_unique<Bench>(context_, key, request.line_mbps);
}

void Advisor::plan(std::uint64_t token, const schema::ForecastRequest& request, std::uint64_t key, bool busy) {
  const KeptBench known =
      read_bench(bench_path(context_.config.state_dir),
                 {std::string(context_.kernels.name), static_cast<std::uint64_t>(engine::usable_processors()),
                  context_.threads, context_.names.size()});
  if (known.bench) return answer(token, forecast(request, *known.bench, false));
  // What is wrong with the job is said before anything is measured for it.
  const Result<schema::JobSpec> job = schema::parse_job(request.spec, "job");
  if (!job) return control_.reply(token, job.error());
  if (const Status valid = check(*job, request.nodes); !valid) return control_.reply(token, valid.error());
  if (const Result<Task> task = make_task(*job); !task) return control_.reply(token, task.error());
  if (!known.outdated.empty()) {
    context_.log.warning("bench-outdated", {{"measured", known.outdated}, {"next", "tgctl bench"}});
    if (busy)
      return control_.reply(token, Error{ErrorKind::kRefused,
                                         context_.config.node + "'s measurement is of another time (" + known.outdated +
                                             ") and it cannot measure while a run is on; tgctl "
                                             "bench, or this again, when it has ended"});
  }
  bench(token, {}, key, busy);
  if (!bench_ || token_ != token) return;
  wanted_ = request;
  outdated_ = known.outdated;
}

void Advisor::on_probe_reply(std::uint64_t key, Seat from, const schema::ProbeReply& reply) {
  if (bench_ && bench_->key() == key) bench_->on_probe_reply(from, reply);
}

void Advisor::on_benched(Benched& event) {
  if (!bench_ || bench_->key() != event.key) return;
  bench_->on_measured(std::move(event.result));
  const std::optional<Result<schema::BenchReply>> result = bench_->take_result();
  bench_.reset();
  const std::optional<schema::ForecastRequest> wanted = std::exchange(wanted_, std::nullopt);
  if (!result->ok()) return control_.reply(token_, result->error());
  if (wanted) return answer(token_, forecast(*wanted, result->value(), true));
  control_.reply(token_, result->value());
}

void Advisor::tick() {
  if (bench_) bench_->tick();
}

void Advisor::give_way() {
  if (!bench_) return;
  bench_.reset();
  wanted_.reset();
  control_.reply(token_, busy_error(context_.config.node));
}

void Advisor::answer(std::uint64_t token, Result<schema::ForecastReply> reply) {
  if (reply)
    control_.reply(token, std::move(reply).value());
  else
    control_.reply(token, reply.error());
}

Result<schema::ForecastReply> Advisor::forecast(const schema::ForecastRequest& request, const schema::BenchReply& bench,
                                                bool measured_now) const {
  const Result<schema::JobSpec> job = schema::parse_job(request.spec, "job");
  if (!job) return job.error();
  if (const Status valid = check(*job, request.nodes); !valid) return valid.error();
  const Result<Task> task = make_task(*job);
  if (!task) return task.error();
  Result<Machine> machine = machine_of(bench);
  if (!machine) return machine.error();
  schema::ForecastReply reply;
  reply.node = context_.config.node;
  reply.measured_ms = bench.measured_ms;
  reply.measured_now = measured_now;
  reply.line_mbps = request.line_mbps > 0 ? request.line_mbps : job->link_mbps;
  Surroundings where;
  where.payload_mbps = reply.line_mbps > 0 ? reply.line_mbps * kPayloadShare : bench.link_mbps;
  if (where.payload_mbps <= 0)
    return Error{ErrorKind::kUsage, "no peer of " + context_.config.node +
                                        " answered when its link was measured; add --link, such as 1Gbps"};
  where.cores = request.cores > 0 ? request.cores : machine->cores;
  where.zeros = expected_zeros(*job);
  if (!request.measured.empty()) {
    const Result<Calibration> calibration = calibrate(*machine, request.measured);
    if (!calibration) return calibration.error();
    machine->cpu_factor = calibration->cpu_factor;
    machine->trip_seconds = calibration->trip_seconds;
    reply.calibration_rows = request.measured.size();
    reply.calibration_error = calibration->worst;
  }
  predict_all(*task, *machine, where, request.nodes, reply);
  if (measured_now && !outdated_.empty())
    reply.assumptions.push_back("measured anew, the kept measurement was outdated: " + outdated_);
  return reply;
}

}  // namespace tg::daemon

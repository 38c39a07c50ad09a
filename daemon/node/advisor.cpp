#include "daemon/node/advisor.h"

#include <utility>

#include "daemon/run/memory_check.h"
#include "daemon/run/run.h"
#include "daemon/run/shares.h"
#include "daemon/step/job_data.h"
#include "engine/resources/processors.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::seconds kMaxLooking{20};  // at a job's data, for a plan; tgctl waits three times as long

Error busy_error(const std::string& node) {
  return {ErrorKind::kRefused, node + " cannot measure while a run is on; ask again when it has ended"};
}

}  // namespace

schema::BenchReply Advisor::about() const {
  schema::BenchReply bench;
  bench.node = context_.self.config.node;
  bench.build = context_.self.build;
  bench.kernels = context_.machine.kernels.name;
  bench.members = context_.self.names.size();
  bench.cores = static_cast<std::uint64_t>(engine::usable_processors());
  bench.threads = context_.machine.threads;
  bench.device = context_.machine.compute.name();
  bench.math = to_word(context_.machine.compute.math());
  return bench;
}

KeptBench Advisor::kept() const { return read_bench(bench_path(context_.self.config.state_dir), about()); }

void Advisor::measure(std::uint64_t key, bool busy, Measured measured) {
  if (busy) return measured(busy_error(context_.self.config.node));
  if (bench_)
    return measured(Error{ErrorKind::kRefused, context_.self.config.node + " measures already; ask again soon"});
  measured_ = std::move(measured);
  bench_ = std::make_unique<Bench>(
      Bench::Options{context_.network.mesh,
                     context_.network.pool,
                     {context_.machine.kernels, context_.machine.compute, static_cast<int>(context_.machine.threads),
                      allowed_memory(context_.self.config.memory_mib << 20)},
                     about(),
                     context_.self.config.seat(),
                     key,
                     [&queue = queue_, key](Result<schema::BenchReply> result) {
                       queue.post(Benched{key, std::move(result)});
                     }});
}

void Advisor::bench(std::uint64_t token, std::uint64_t key, bool busy) {
  measure(key, busy, [this, token](const Result<schema::BenchReply>& result) {
    result ? control_.reply(token, result.value()) : control_.reply(token, result.error());
  });
}

void Advisor::plan(std::uint64_t token, const schema::ForecastRequest& request, std::uint64_t key, bool busy) {
  Result<schema::JobSpec> job = schema::parse_job(request.spec, "job");
  if (!job) return control_.reply(token, job.error());
  const engine::DatasetOptions data = dataset_options(*job, context_.data_dir_for(*job), 1);
  const bool unknown = job->compute == schema::Compute::kTrain && !engine::known_shape(data);
  Question question = weighed({std::move(job).value(), request.nodes, request.line_mbps, request.cores, true});
  if (!unknown) return answer_plan(token, std::move(question), key, busy);
  if (looking_)
    return control_.reply(token, Error{ErrorKind::kRefused,
                                       context_.self.config.node + " looks at data for another plan; ask again soon"});
  looking_.emplace(Looking{token, key, std::move(question), std::chrono::steady_clock::now() + kMaxLooking, nullptr});
  looking_->look = std::make_unique<DataLook>(data, [&queue = queue_, key](Result<engine::SetSight> sight) {
    queue.post(DataSeen{key, std::move(sight)});
  });
}

void Advisor::on_data_seen(DataSeen& event, bool busy) {
  if (!looking_ || looking_->key != event.key) return;
  Looking looking = *std::exchange(looking_, std::nullopt);
  Question& question = looking.question;
  if (event.result) {
    const engine::SetShape& shape = event.result->shape;
    question.model = model_options(question.job, shape.stored, static_cast<std::size_t>(shape.classes));
    question.data = "on " + context_.self.config.node + ", " + event.result->what;
  } else {
    question.data = context_.self.config.node + " cannot look at them: " + event.result.error().message;
  }
  answer_plan(looking.token, std::move(question), looking.key, busy);
}

void Advisor::answer_plan(std::uint64_t token, Question question, std::uint64_t key, bool busy) {
  foresee(std::move(question), key, busy, [this, token](const Result<Forecast>& known) {
    known ? control_.reply(token, known->reply) : control_.reply(token, known.error());
  });
}

Question Advisor::weighed(Question question) const {
  const std::size_t nodes = context_.self.names.size();
  const std::uint64_t batch = schema::resolved_global_batch(question.job, nodes);
  if (question.nodes != nodes || batch < nodes) return question;
  const auto shares = member_shares(View::of_all(context_.weights()), context_.self.names, batch);
  question.uneven = schema::uneven_shares(shares);
  if (!question.uneven.empty()) question.own_samples = shares[context_.self.config.seat().index()].samples;
  return question;
}

void Advisor::foresee(Question question, std::uint64_t key, bool busy, Answer answer) {
  const KeptBench known = kept();
  if (known.bench) return answer(forecast(question, *known.bench));
  // What is wrong with the job is said before anything is measured for it.
  if (const Status valid = check(question); !valid) return answer(valid.error());
  if (!known.outdated.empty()) {
    context_.news.log.warning("bench-outdated", {{"measured", known.outdated}, {"next", "tgctl bench"}});
    if (busy)
      return answer(Error{ErrorKind::kRefused, context_.self.config.node + "'s measurement is of another time (" +
                                                   known.outdated +
                                                   ") and it cannot measure while a run is on; tgctl "
                                                   "bench, or this again, when it has ended"});
  }
  measure(key, busy,
          [question = std::move(question), outdated = known.outdated,
           answer = std::move(answer)](const Result<schema::BenchReply>& measured) {
            if (!measured) return answer(measured.error());
            Result<Forecast> now = forecast(question, measured.value());
            if (now) now->reply.measured_now = true;
            if (now && !outdated.empty())
              now->reply.assumptions.push_back("measured anew, the kept measurement was outdated: " + outdated);
            answer(now);
          });
}

schema::StartReply Advisor::foresee(schema::StartReply facts, const Run& run, const schema::Commit& chosen) const {
  const schema::JobSpec& job = run.job();
  std::optional<schema::BenchReply> known = kept().bench;
  if (!known)
    known = assumed_bench(
        {to_word(job.model), facts.local_batch, facts.compute_seconds / static_cast<double>(facts.local_batch), 0},
        about());
  if (facts.link_mbps > 0) known->link_mbps = facts.link_mbps;  // of this minute
  Question question{job, facts.members, 0, 0, false, chosen};
  question.model = run.model();
  question.uneven = schema::uneven_shares(facts.shares);
  if (!question.uneven.empty()) question.own_samples = facts.local_batch;
  add(facts, forecast(question, *known));
  return facts;
}

void Advisor::add(schema::StartReply& facts, const Result<Forecast>& forecast) {
  if (!forecast) {
    facts.unpredicted = forecast.error().message;
    return;
  }
  const schema::ForecastReply& reply = forecast->reply;
  facts.predicted =
      forecast->chosen.exchange == schema::ExchangeKind::kDirect ? reply.asked.direct : reply.asked.sharded;
  facts.link_mbps = reply.payload_mbps;
  facts.measured_ms = reply.measured_ms;
}

void Advisor::on_probe_reply(std::uint64_t key, Seat from, const schema::ProbeReply& reply) {
  if (bench_ && bench_->key() == key) bench_->on_probe_reply(from, reply);
}

void Advisor::on_benched(Benched& event) {
  if (!bench_ || bench_->key() != event.key) return;
  bench_.reset();
  if (event.result) {
    const std::string path = bench_path(context_.self.config.state_dir);
    const Status written = write_bench(path, *event.result);
    if (written)
      event.result->saved = path;
    else
      context_.news.log.warning("bench-not-saved", {{"error", written.error().message}});
  }
  std::exchange(measured_, nullptr)(event.result);
}

void Advisor::tick(bool busy) {
  if (looking_ && std::chrono::steady_clock::now() >= looking_->until) {
    DataSeen late{looking_->key, Error{ErrorKind::kTimeout, "it took too long"}};
    on_data_seen(late, busy);
  }
  if (bench_) bench_->tick();
}

void Advisor::give_way(const std::string& why) {
  if (!bench_) return;
  bench_.reset();
  std::exchange(measured_, nullptr)(Error{ErrorKind::kRefused, why});
}

}  // namespace tg::daemon

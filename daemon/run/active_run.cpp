#include "daemon/run/active_run.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "daemon/exchange/compare_digests.h"
#include "daemon/run/artefacts.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

constexpr std::size_t kStepsRemembered = 64;             // for rates and the median
constexpr std::chrono::milliseconds kPublishEvery{100};  // how old the numbers of status may be
constexpr std::chrono::milliseconds kOwnSleep{500};      // between two ticks: longer means that we were stopped
constexpr double kExpectedZeros = 0.92;  // share of zero codes, for predictions (c = 2.5; DESIGN section 9)

engine::OptimizerOptions optimizer_of(const schema::JobSpec& job) {
  engine::OptimizerOptions options;
  options.kind = job.optimizer == "adam"  ? kernels::OptimizerKind::kAdam
                 : job.optimizer == "sgd" ? kernels::OptimizerKind::kSgd
                                          : kernels::OptimizerKind::kMomentum;
  options.schedule.kind = job.schedule == "staircase"    ? engine::ScheduleKind::kStaircase
                          : job.schedule == "polynomial" ? engine::ScheduleKind::kPolynomial
                                                         : engine::ScheduleKind::kConstant;
  options.schedule.base_rate = job.learning_rate;
  options.schedule.factor = job.schedule_factor;
  options.schedule.every = job.schedule_every;
  options.schedule.power = job.schedule_power;
  options.schedule.steps = job.steps;
  options.momentum = job.momentum;
  options.beta1 = job.beta1;
  options.beta2 = job.beta2;
  options.epsilon = job.epsilon;
  return options;
}

}  // namespace

ActiveRun::ActiveRun(const RunContext& context, RunIdentity identity, schema::JobSpec job)
    : context_(context),
      identity_(std::move(identity)),
      job_(std::move(job)),
      optimizer_(optimizer_of(job_)),
      wait_seconds_(context.names.size()) {
  const std::uint64_t key = identity_.key;
  EventQueue& queue = context_.queue;
  Trainer::Options options{job_,
                           job_.data_dir.empty() ? context_.config.data_dir : job_.data_dir,
                           job_.threads ? job_.threads : context_.threads,
                           context_.config.rank(),
                           context_.names.size(),
                           context_.config.node};
  trainer_ =
      std::make_unique<Trainer>(std::move(options), context_.kernels, context_.progress, context_.fault,
                                Trainer::Hooks{[&queue, key](auto result) {
                                                 queue.post(RunPrepared{key, std::move(result)});
                                               },
                                               [&queue, key](std::uint64_t step, std::size_t bucket, double loss) {
                                                 queue.post(BucketReady{key, step, bucket, loss});
                                               },
                                               [&queue, key](std::uint64_t step, engine::EvaluationCounts counts) {
                                                 queue.post(Evaluated{key, step, counts});
                                               },
                                               [&queue, key](std::string message) {
                                                 queue.post(ComputeFailed{key, std::move(message)});
                                               }});
}

// --- start ---

Plan ActiveRun::plan(schema::ExchangeKind exchange, bool ternary) const {
  return make_plan(prepared_->model.segments,
                   {context_.names.size(), exchange, ternary, job_.last_layer == "ternary",
                    static_cast<std::size_t>(job_.min_ternary_size), static_cast<std::size_t>(job_.bucket_parameters),
                    static_cast<std::size_t>(job_.chunk_parameters)});
}

schema::Vote ActiveRun::on_prepared(Result<std::shared_ptr<const Prepared>> result) {
  schema::Vote vote;
  vote.spec_hash = schema::job_hash(job_);
  if (!result.ok()) {
    vote.kind = result.error().kind;
    vote.message = result.error().message;
    return vote;
  }
  prepared_ = std::move(result).value();
  for (const engine::Segment& segment : prepared_->model.segments.segments()) segment_names_.push_back(segment.name);
  vote.accepted = true;
  vote.model_hash = prepared_->model_hash;
  vote.data_hash = prepared_->data_hash;
  vote.state_hash = prepared_->initial_digest;
  vote.step_seconds = prepared_->step_seconds;
  vote.local_batch =
      static_cast<std::uint32_t>(engine::share_of(global_batch(), static_cast<int>(context_.config.rank()),
                                                  static_cast<int>(context_.names.size()))
                                     .count);
  // Made now: after our vote frames of the others may come before the commit does.
  exchange_ = std::make_unique<Exchange>(
      Exchange::Options{context_.names, context_.config.rank(), identity_.key, Membership::kView, segment_names_});
  return vote;
}

Status ActiveRun::begin(schema::ExchangeKind exchange) {
  TG_CHECK(prepared_ != nullptr && !begun_);
  begun_ = true;
  sent_bytes_before_ = context_.mesh.sent_bytes();  // by earlier runs
  plan_ = plan(exchange, job_.gradients == "ternary");
  if (job_.float_steps > 0) float_plan_ = plan(exchange, false);
  Worker::Options options;
  options.self = context_.config.rank();
  options.members = context_.names.size();
  options.run_key = identity_.key;
  options.seed = job_.seed;
  options.clip_sigma = job_.clip_sigma;
  options.repo_recipe = job_.scaler == "repo";
  options.outside_weight_decay = job_.weight_decay_path == "outside" ? static_cast<float>(job_.weight_decay) : 0.0f;
  worker_ = std::make_unique<Worker>(
      options, context_.kernels, prepared_->model.segments, *prepared_->replica, context_.pool,
      [this](const std::vector<Rank>& to, schema::SharedFrame frame) { send_frame(to, frame); });
  const std::int64_t now = unix_time_ms();
  status_.id = identity_.id;
  status_.state = schema::RunState::kRunning;
  status_.since_ms = status_.started_ms = now;
  status_.model = job_.model;
  status_.data = job_.data;
  status_.exchange = exchange == schema::ExchangeKind::kSharded ? "sharded" : "direct";
  status_.gradients = job_.gradients;
  status_.steps = job_.steps;
  status_.parameters = prepared_->model.segments.parameter_count();
  status_.initial_digest = status_.digest = prepared_->initial_digest;
  for (const std::string& name : context_.names)
    status_.members.push_back({name, schema::RunState::kRunning, 0, 0, 0, 0});
  record_ = RunRecord{};
  record_.id = identity_.id;
  record_.spec = identity_.spec;
  record_.seed = job_.seed;
  record_.spec_hash = schema::job_hash(job_);
  record_.model_hash = prepared_->model_hash;
  record_.data_hash = prepared_->data_hash;
  record_.initial_digest = prepared_->initial_digest;
  record_.node = context_.config.node;
  record_.member_names = context_.names;
  record_.own = {context_.config.node, prepared_->engine_build, prepared_->threads, std::string(context_.kernels.name)};
  record_.build = context_.build;
  publish(true);
  record_.status = status_;
  if (Status written = context_.store.write(record_); !written.ok()) return written;
  metrics_.open(context_.store.directory(identity_.id) + "/metrics.jsonl", std::ios::trunc);
  context_.log.info("run-started", {{"run", identity_.id},
                                    {"model", job_.model},
                                    {"members", context_.names.size()},
                                    {"seed", job_.seed},
                                    {"exchange", status_.exchange},
                                    {"kernels", context_.kernels.name},
                                    {"engine", prepared_->engine_build},
                                    {"local-batch", global_batch() / context_.names.size()},
                                    {"memory-bytes", plan_reply(exchange).memory_bytes},
                                    {"initial-digest", hex_digest(prepared_->initial_digest)}});
  begin_step();
  return {};
}

// --- steps ---

void ActiveRun::begin_step() {
  const std::uint64_t step = prepared_->replica->committed_steps();
  Replica& replica = *prepared_->replica;
  context_.progress.step = step;
  step_started_ = Clock::now();
  if (context_.fault.is(Fault::Kind::kFlip, schema::Phase::kForward, step)) {
    replica.flip_bit(prepared_->model.segments[0].offset);
    context_.log.warning("fault-injected", {{"kind", "flip"}, {"segment", segment_names_[0]}, {"step", step}});
  }
  const kernels::Update update = engine::update_for_step(optimizer_, step);
  const float rate = engine::learning_rate(optimizer_.schedule, step);
  status_.learning_rate = rate;
  LocalStep local{step, std::bit_cast<std::uint32_t>(rate), 0, {}};
  if (job_.digest_every > 0 && step % job_.digest_every == 0) {
    local.digests = replica.segment_digests(context_.kernels);
    note_digest(local.digests);
  }
  if (job_.evaluate_every > 0 && (step + 1) % job_.evaluate_every == 0) local.flags |= schema::kEvaluateAfterStep;
  const Plan& plan = step < job_.float_steps ? float_plan_ : plan_;
  worker_->begin_step(plan, step, trainer_->gradients(), update);
  exchange_->begin_step(plan, std::move(local));
  trainer_->train(step, plan);
  drain();
}

void ActiveRun::on_bucket_ready(const BucketReady& event) {
  if (!begun_ || outcome_.failed || !exchange_->in_step() || event.step != exchange_->step()) return;
  ++context_.progress.count;
  exchange_->bucket_ready(event.bucket, worker_->measure(event.bucket), event.loss_sum);
  drain();
}

void ActiveRun::on_frame(Rank from, const schema::Frame& frame, std::shared_ptr<const void> keep) {
  if (!exchange_ || frame.header.run != identity_.key) return;
  ++context_.progress.count;
  if (const auto* report = std::get_if<schema::Report>(&frame.body))
    on_report(from, frame.header.step, *report);
  else
    exchange_->frame(from, frame.header, frame.body, std::move(keep));
  drain();
}

void ActiveRun::drain() {
  for (std::vector<ExchangeAction> actions = exchange_->take_actions(); !actions.empty();
       actions = exchange_->take_actions()) {
    for (const ExchangeAction& action : actions) {
      if (outcome_.failed) return;
      const std::uint64_t step = prepared_->replica->committed_steps();
      if (const auto* send = std::get_if<SendFrame>(&action)) {
        send_frame(send->to, schema::encode_frame(send->header, send->body, context_.pool));
        context_.fault.reached(schema::Phase::kScalerWait, step);
      } else if (const auto* commit = std::get_if<CommitStep>(&action)) {
        on_commit(*commit);
      } else if (const auto* failure = std::get_if<FailRun>(&action)) {
        fail(failure->cause);
      } else {
        if (std::holds_alternative<Accumulate>(action)) context_.fault.reached(schema::Phase::kReduce, step);
        if (std::holds_alternative<Apply>(action)) context_.fault.reached(schema::Phase::kGather, step);
        if (worker_->carry_out(action, *exchange_)) {
          ++context_.progress.count;
          continue;
        }
        const auto* sums = std::get_if<Accumulate>(&action);
        const auto* total = std::get_if<Apply>(&action);
        exchange_->bad_payload(sums ? sums->chunk : total->chunk, sums ? sums->rank : total->rank);
        // Its cause goes before what is left of this list: a commit there must not happen.
        for (const ExchangeAction& next : exchange_->take_actions())
          if (const auto* cause = std::get_if<FailRun>(&next)) fail(cause->cause);
      }
    }
  }
}

void ActiveRun::on_commit(const CommitStep& commit) {
  Replica& replica = *prepared_->replica;
  const std::uint64_t step = commit.step + 1;  // committed steps from now on
  replica.commit(context_.kernels, engine::average_rate(job_.ema, step));
  ++context_.progress.count;
  context_.progress.step = step;
  status_.step = step;
  status_.loss = commit.loss_sum / static_cast<double>(global_batch());
  traffic_ = worker_->traffic();
  const std::uint64_t sent = context_.mesh.sent_bytes();
  sent_bytes_step_ = sent - std::exchange(sent_bytes_before_, sent);
  step_seconds_.push_back(std::chrono::duration<double>(Clock::now() - step_started_).count());
  step_sent_bytes_.push_back(static_cast<double>(sent_bytes_step_));
  if (step_seconds_.size() > kStepsRemembered) {
    step_seconds_.pop_front();
    step_sent_bytes_.pop_front();
  }
  const bool last = step == job_.steps;
  const bool stopped = !last && (commit.flags & schema::kStopAfterStep);
  const bool evaluate = !stopped && (last || (commit.flags & schema::kEvaluateAfterStep));
  if (commit.flags & schema::kStopAfterStep) show_stopping();
  reports_.erase(reports_.begin(), reports_.lower_bound(step));
  publish(last || stopped);
  if (last || stopped || evaluate) {
    start_report(last || stopped, stopped, evaluate);
  } else {
    write_metrics(false);
    begin_step();
  }
}

// --- evaluations and the end ---

void ActiveRun::start_report(bool last, bool stopped, bool evaluate) {
  pending_ = Pending{prepared_->replica->committed_steps(), last, stopped};
  if (evaluate && !prepared_->data->test.labels.empty())
    trainer_->evaluate(pending_->step);
  else
    send_report({});
}

void ActiveRun::on_evaluated(const Evaluated& event) {
  if (!pending_ || event.step != pending_->step || outcome_.failed) return;
  send_report(event.counts);
}

void ActiveRun::send_report(const engine::EvaluationCounts& counts) {
  const std::vector<std::uint64_t> digests = prepared_->replica->segment_digests(context_.kernels);
  note_digest(digests);
  const schema::Report report{pending_->last, counts.correct, counts.total, counts.loss_sum, digests};
  std::vector<Rank> others;
  for (Rank r = 0; r < context_.names.size(); ++r)
    if (r != context_.config.rank()) others.push_back(r);
  const schema::FrameHeader header{identity_.key, Membership::kView, static_cast<std::uint32_t>(pending_->step)};
  if (!others.empty()) send_frame(others, schema::encode_frame(header, report, context_.pool));
  on_report(context_.config.rank(), pending_->step, report);
}

void ActiveRun::on_report(Rank from, std::uint64_t step, const schema::Report& report) {
  const std::uint64_t committed = prepared_->replica->committed_steps();
  if (step != committed && step != committed + 1)
    return fail(from, "evaluate",
                context_.names[from] + " reports on step " + std::to_string(step) + " while " + context_.config.node +
                    " has committed " + std::to_string(committed));
  auto& slots = reports_[step];
  slots.resize(context_.names.size());
  slots[from] = report;
  if (pending_) finish_reports();
}

void ActiveRun::finish_reports() {
  const auto found = reports_.find(pending_->step);
  if (found == reports_.end()) return;
  const auto& slots = found->second;
  if (!std::all_of(slots.begin(), slots.end(), [](const auto& slot) { return slot.has_value(); })) return;
  std::vector<std::vector<std::uint64_t>> digests;
  engine::EvaluationCounts all;
  for (const auto& slot : slots) {
    digests.push_back(slot->digests);
    all.correct += slot->correct;
    all.total += slot->total;
    all.loss_sum += slot->loss_sum;
  }
  const Pending pending = *std::exchange(pending_, std::nullopt);
  reports_.erase(found);
  if (auto difference =
          compare_digests(context_.names, segment_names_, digests, "after step " + std::to_string(pending.step)))
    return fail(std::move(*difference));
  if (all.total > 0) {
    status_.evaluated = true;
    status_.evaluation_step = pending.step;
    status_.evaluation_accuracy = static_cast<double>(all.correct) / static_cast<double>(all.total);
    status_.evaluation_loss = all.loss_sum / static_cast<double>(all.total);
  }
  write_metrics(all.total > 0);
  publish(true);
  if (!pending.last) return begin_step();
  outcome_.finished = pending.stopped ? schema::RunState::kStopped : schema::RunState::kCompleted;
}

void ActiveRun::on_compute_failed(const std::string& message) {
  fail(context_.config.rank(), "compute", context_.config.node + ": the engine failed: " + message);
}

void ActiveRun::request_stop() {
  if (!begun_) return;
  exchange_->add_flags(schema::kStopAfterStep);
  show_stopping();
}

void ActiveRun::show_stopping() {
  outcome_.stopping = true;
  if (status_.state == schema::RunState::kStopping) return;
  status_.state = schema::RunState::kStopping;
  status_.since_ms = unix_time_ms();
  publish(true);
}

void ActiveRun::fail(schema::Fail cause) {
  if (!outcome_.failed) outcome_.failed = std::move(cause);
}

void ActiveRun::fail(Rank about, const std::string& phase, const std::string& message) {
  fail(schema::Fail{ErrorKind::kRunFailed, context_.names[about], phase, message});
}

void ActiveRun::send_frame(const std::vector<Rank>& to, const schema::SharedFrame& frame) {
  if (!context_.mesh.send(to, frame))
    fail(to.front(), "send",
         "a peer takes no frames any more: " + std::to_string(Mesh::kMostWaitingFrames) + " wait for it");
}

ActiveRun::Outcome ActiveRun::take_outcome() {
  Outcome outcome = outcome_;
  outcome_.stopping = false;
  outcome_.finished.reset();
  return outcome;
}

Exchange::Waiting ActiveRun::waiting() const {
  if (!begun_ || outcome_.failed) return {};
  if (!pending_) return exchange_->waiting();
  Exchange::Waiting waiting;
  const auto found = reports_.find(pending_->step);
  const Rank self = context_.config.rank();
  if (found == reports_.end() || !found->second[self].has_value()) return waiting;  // our own evaluation is not done
  waiting.phase = schema::Phase::kIdle;
  for (Rank r = 0; r < context_.names.size(); ++r)
    if (!found->second[r].has_value()) waiting.ranks.push_back(r);
  return waiting;
}

// --- watching ---

std::uint64_t ActiveRun::step_timeout_ms() const {
  if (step_seconds_.empty()) return job_.step_timeout_ms;
  std::vector<double> sorted(step_seconds_.begin(), step_seconds_.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  return std::max(job_.step_timeout_ms, static_cast<std::uint64_t>(10'000 * sorted[sorted.size() / 2]));
}

// Everybody alive, nobody stuck in its own work, and still nothing comes: a frame was lost on the way.
void ActiveRun::tick() {
  if (!begun_ || outcome_.failed) return;
  publish(false);  // a run that stands still shows where
  const Clock::time_point now = Clock::now();
  const std::uint64_t count = context_.progress.count;
  const bool slept =
      now - std::exchange(ticked_, now) > kOwnSleep;  // this process was stopped: nobody else is to blame
  if (count != progress_count_ || slept) {
    progress_count_ = count;
    progress_seen_ = now;
  }
  const Exchange::Waiting waits = waiting();
  const auto limit = std::chrono::milliseconds(step_timeout_ms() * 3 / 2);
  if (waits.ranks.empty() || now - progress_seen_ < limit) return;
  const std::string phase = pending_ ? "evaluate" : std::string(schema::phase_name(waits.phase));
  fail(waits.ranks.front(), phase,
       context_.config.node + " has waited " + std::to_string(limit.count() / 1000) + " s for " +
           context_.names[waits.ranks.front()] + " in " + phase + " of step " + std::to_string(status_.step) +
           ": it is alive but its frames do not come");
}

void ActiveRun::waited(const std::vector<Rank>& ranks, double seconds) {
  for (const Rank rank : ranks) wait_seconds_[rank] += seconds / static_cast<double>(ranks.size());
}

void ActiveRun::note_digest(const std::vector<std::uint64_t>& digests) {
  status_.digest = Replica::combine(digests);
  status_.digest_step = prepared_->replica->committed_steps();
}

void ActiveRun::publish(bool now) {
  const Clock::time_point time = Clock::now();
  if (!now && time - published_ < kPublishEvery) return;
  published_ = time;
  const double seconds = std::accumulate(step_seconds_.begin(), step_seconds_.end(), 0.0);
  const double parameters = static_cast<double>(status_.parameters);
  if (seconds > 0) status_.samples_per_second = static_cast<double>(global_batch() * step_seconds_.size()) / seconds;
  status_.code_bits_per_parameter = 8.0 * static_cast<double>(traffic_.contribution_bytes) / parameters;
  if (!step_sent_bytes_.empty())
    status_.sent_bytes_per_step = std::accumulate(step_sent_bytes_.begin(), step_sent_bytes_.end(), 0.0) /
                                  static_cast<double>(step_sent_bytes_.size());
  status_.sent_bits_per_parameter = 8.0 * status_.sent_bytes_per_step / parameters;
  if (traffic_.elements > 0)
    status_.zeros = 1.0 - static_cast<double>(traffic_.nonzeros) / static_cast<double>(traffic_.elements);
  const double all_waits = std::accumulate(wait_seconds_.begin(), wait_seconds_.end(), 0.0);
  for (Rank r = 0; r < status_.members.size(); ++r) {
    status_.members[r].state = status_.state;
    status_.members[r].wait_share = all_waits > 0 ? wait_seconds_[r] / all_waits : 0;
  }
  schema::MemberStatus& own = status_.members[context_.config.rank()];
  own.step = status_.step;
  own.digest = status_.digest;
  own.digest_step = status_.digest_step;
  context_.store.update(status_);
}

void ActiveRun::write_metrics(bool evaluated) {
  nlohmann::ordered_json row;
  row["step"] = status_.step;
  row["loss"] = status_.loss;
  row["learning_rate"] = status_.learning_rate;
  if (evaluated) {
    row["accuracy"] = status_.evaluation_accuracy;
    row["evaluation_loss"] = status_.evaluation_loss;
  }
  row["sent_bytes"] = sent_bytes_step_;
  row["zeros"] =
      traffic_.elements ? 1.0 - static_cast<double>(traffic_.nonzeros) / static_cast<double>(traffic_.elements) : 0.0;
  row["seconds"] = step_seconds_.empty() ? 0.0 : step_seconds_.back();
  metrics_ << row.dump() << '\n';
  if (evaluated) metrics_.flush();
}

schema::PlanReply ActiveRun::plan_reply(schema::ExchangeKind exchange) const {
  TG_CHECK(prepared_ != nullptr);
  const engine::SegmentTable& segments = prepared_->model.segments;
  const Plan cut = plan(exchange, job_.gradients == "ternary");
  schema::PlanReply reply;
  reply.run_id = identity_.id;
  reply.parameters = segments.parameter_count();
  reply.members = context_.names.size();
  reply.global_batch = global_batch();
  reply.local_batch =
      static_cast<std::uint64_t>(engine::share_of(global_batch(), static_cast<int>(context_.config.rank()),
                                                  static_cast<int>(context_.names.size()))
                                     .count);
  reply.exchange = cut.sharded() ? "sharded" : "direct";
  reply.compute_seconds = prepared_->step_seconds;
  reply.single_node_seconds =
      prepared_->step_seconds * static_cast<double>(reply.global_batch) / static_cast<double>(reply.local_batch);
  const double bits = predict_traffic(cut, kExpectedZeros).sent_bits;
  reply.sent_bits_per_parameter = bits / static_cast<double>(reply.parameters);
  reply.link_mbps = job_.link_mbps;
  reply.wire_seconds = job_.link_mbps > 0 ? bits / (job_.link_mbps * 1e6) : 0;
  reply.speed_up = reply.single_node_seconds / (reply.compute_seconds + reply.wire_seconds);
  reply.memory_bytes = Replica::bytes(segments, prepared_->replica->slot_count()) +
                       segments.padded_count() * sizeof(float) + Worker::bytes(segments);
  return reply;
}

Status ActiveRun::save(schema::RunState state, const std::string& reason) {
  status_.state = state;
  status_.reason = reason;
  status_.since_ms = unix_time_ms();
  note_digest(prepared_->replica->segment_digests(context_.kernels));
  publish(true);
  metrics_.flush();
  context_.progress.phase = schema::Phase::kSave;
  Status written =
      write_artefacts(context_.store.directory(identity_.id), prepared_->model.segments, *prepared_->replica,
                      {{"format", "pt"},
                       {"run", identity_.id},
                       {"step", std::to_string(status_.step)},
                       {"digest", hex_digest(status_.digest)}});
  record_.status = status_;
  Status recorded = context_.store.write(record_);
  context_.progress.phase = schema::Phase::kIdle;
  return written.ok() ? recorded : written;
}

}  // namespace tg::daemon

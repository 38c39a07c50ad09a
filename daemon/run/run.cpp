#include "daemon/run/run.h"

#include <algorithm>

#include "daemon/exchange/compare_digests.h"
#include "daemon/mesh/probe/send_burst.h"
#include "daemon/run/memory_check.h"
#include "daemon/run/preparation.h"
#include "daemon/store/artefacts.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

constexpr std::chrono::milliseconds kPublishEvery{100};  // how old the numbers of status may be
constexpr std::chrono::milliseconds kOwnSleep{500};      // between two ticks: longer means that we were stopped

Trainer::Prepare preparation(const RunContext& context, const schema::JobSpec& job) {
  const PreparationOptions options{job,
                                   job.data_dir.empty() ? context.config.data_dir : job.data_dir,
                                   context.threads_for(job),
                                   context.config.rank(),
                                   context.names.size(),
                                   context.config.node,
                                   context.config.memory_mib << 20};
  return [options, &home = context.home, &kernels = context.kernels](const std::function<void()>& advance) {
    return prepare(options, home, kernels, advance);
  };
}

// The compute thread's reports, as events of the node's queue.
Trainer::Hooks trainer_hooks(EventQueue& queue, std::uint64_t key) {
  return {[&queue, key](auto result) {
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
          }};
}

}  // namespace

ActiveRun::ActiveRun(const RunContext& context, RunIdentity identity, schema::JobSpec job)
    : context_(context),
      identity_(std::move(identity)),
      job_(std::move(job)),
      probe_(job_.link_mbps > 0 ? 1 : context.names.size(), context.config.rank()),
      numbers_(context.names, context.config.rank(), schema::resolved_global_batch(job_, context.names.size())),
      stragglers_(context.names.size(), context.config.rank()) {
  if (job_.trace) timeline_->start(context_.config.node, context_.config.rank());
  trainer_ = std::make_unique<Trainer>(Trainer::Options{job_, context_.config.rank(), context_.names.size()},
                                       preparation(context_, job_), context_.progress, context_.fault, timeline_,
                                       trainer_hooks(context_.queue, identity_.key));
}

double ActiveRun::seconds() const { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// --- before it begins ---

void ActiveRun::on_probe_reply(Rank from, const schema::ProbeReply& reply) {
  if (const auto next = probe_.replied(from, reply, seconds()))
    send_burst(context_.mesh, context_.pool, identity_.key, *next);
}

void ActiveRun::on_prepared(Result<std::shared_ptr<const Prepared>> result) {
  preparation_ = std::move(result);
  if (!preparation_->ok()) return;
  prepared_ = preparation_->value();
  for (const engine::Segment& segment : prepared_->model.segments.segments()) segment_names_.push_back(segment.name);
  Member::Options options;
  options.names = context_.names;
  options.self = context_.config.rank();
  options.run_key = identity_.key;
  options.job = job_;
  options.segment_names = segment_names_;
  options.has_test_data = prepared_->data != nullptr && !prepared_->data->test.labels.empty();
  // Made now: after our vote frames of the others may come before the commit does.
  member_ = std::make_unique<Member>(std::move(options), hooks());
  // Not before: this node's cores and memory have nothing else to do now.
  if (const auto burst = probe_.start(seconds())) send_burst(context_.mesh, context_.pool, identity_.key, *burst);
}

std::optional<schema::Vote> ActiveRun::take_vote() {
  if (voted_ || !preparation_) return std::nullopt;
  probe_.tick(seconds());
  if (preparation_->ok() && !probe_.done()) return std::nullopt;
  voted_ = true;
  return vote();
}

Member::Hooks ActiveRun::hooks() {
  Member::Hooks hooks;
  hooks.send = [this](const std::vector<Rank>& to, const schema::SharedFrame& frame) { send_frame(to, frame); };
  hooks.train = [this](std::uint64_t step, const Plan& plan, kernels::ConstFloats parameters, bool early) {
    trainer_->train(step, plan, parameters, early);
  };
  hooks.segment_ready = [this](std::size_t segment) { trainer_->segment_ready(segment); };
  hooks.evaluate = [this](std::uint64_t step) { trainer_->evaluate(step); };
  hooks.reached = [this](schema::Phase phase, std::uint64_t step) { context_.fault.reached(phase, step); };
  hooks.before_step = [this](std::uint64_t step) { before_step(step); };
  hooks.may_start_early = [this](std::uint64_t step) {
    return !context_.fault.is(Fault::Kind::kFlip, schema::Phase::kForward, step);
  };
  hooks.committed = [this](const Member::Committed& committed) { on_committed(committed); };
  hooks.reported = [this](const std::optional<Member::Evaluation>& evaluation) { on_reported(evaluation); };
  hooks.state_digests = [this](const std::vector<std::uint64_t>& digests) { note_digests(digests); };
  return hooks;
}

Status ActiveRun::begin(const schema::Commit& choice) {
  TG_CHECK(prepared_ != nullptr && !begun());
  const schema::PlanReply reply = plan_reply(choice);
  const engine::SegmentTable& segments = prepared_->model.segments;
  const std::uint64_t held = Replica::bytes(segments, prepared_->replica->slot_count(), keeps_average(job_)) +
                             segments.padded_count() * sizeof(float);
  if (const Status fits = check_memory(reply.memory_bytes, held, context_.config.memory_mib << 20); !fits.ok())
    return Error{fits.error().kind, fits.error().message + " (exchange = " + reply.exchange +
                                        ", coding = " + reply.coding + " was chosen)"};
  schema::RunStatus& status = numbers_.status();
  status.id = identity_.id;
  status.state = schema::RunState::kRunning;
  status.since_ms = status.started_ms = unix_time_ms();
  status.model = job_.model;
  status.data = job_.data;
  status.exchange = reply.exchange;
  status.coding = reply.coding;
  status.gradients = job_.gradients;
  status.steps = job_.steps;
  status.parameters = prepared_->model.segments.parameter_count();
  status.initial_digest = status.digest = prepared_->initial_digest;
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
  record_.status = status;
  if (Status written = context_.store.write(record_); !written.ok()) return written;
  numbers_.open_metrics(context_.store.directory(identity_.id));
  numbers_.start_counting(context_.mesh.sent_bytes());  // what earlier runs sent is not this one's
  context_.log.info("run-started", {{"run", identity_.id},
                                    {"model", job_.model},
                                    {"members", context_.names.size()},
                                    {"seed", job_.seed},
                                    {"exchange", reply.exchange},
                                    {"coding", reply.coding},
                                    {"link-mbps", probe_.mbps()},
                                    {"kernels", context_.kernels.name},
                                    {"engine", prepared_->engine_build},
                                    {"local-batch", reply.local_batch},
                                    {"memory-bytes", reply.memory_bytes},
                                    {"initial-digest", hex_digest(prepared_->initial_digest)}});
  committed_ = Clock::now();
  member_->begin(choice, context_.home, context_.kernels, prepared_->model.segments, *prepared_->replica,
                 trainer_->gradients(), context_.pool);
  make_crew();
  return {};
}

// --- steps ---

void ActiveRun::before_step(std::uint64_t step) {
  context_.progress.step = step;
  numbers_.step_began();
  if (!context_.fault.is(Fault::Kind::kFlip, schema::Phase::kForward, step)) return;
  prepared_->replica->flip_bit(prepared_->model.segments[0].offset);
  context_.log.warning("fault-injected", {{"kind", "flip"}, {"segment", segment_names_[0]}, {"step", step}});
}

void ActiveRun::on_bucket_ready(const BucketReady& event) {
  if (!begun()) return;
  ++context_.progress.count;
  member_->bucket_ready(event.step, event.bucket, event.loss_sum);
}

void ActiveRun::on_frame(Rank from, const schema::Frame& frame, std::shared_ptr<const void> keep) {
  if (!member_) return;
  ++context_.progress.count;
  member_->frame(from, frame.header, frame.body, std::move(keep));
}

void ActiveRun::on_total_made(const MadeFrame& total) { member_->made(total); }

void ActiveRun::on_piece_done(const Piece& piece, PieceResult result) {
  ++context_.progress.count;
  member_->done(piece, std::move(result));
}

bool ActiveRun::work() {
  if (!begun()) return false;
  const std::optional<Piece> own = member_->next_piece();
  if (!own) return false;
  const std::uint64_t step = member_->step();
  while (crew_->has_room()) {
    std::optional<Piece> piece = member_->next_piece();
    if (!piece) break;
    const std::size_t bucket = member_->bucket_of(*piece);
    crew_->give(*std::move(piece), step, bucket);
  }
  ++context_.progress.count;
  const std::size_t bucket = member_->bucket_of(*own);
  const Clock::time_point begin = Clock::now();
  const std::uint64_t sent = member_->carry_out(*own);
  if (timeline_->on())
    timeline_->add(Timeline::Track::kNode, piece_name(*own), step, begin, Clock::now(),
                   {static_cast<std::int64_t>(bucket), sent});
  return true;
}

// One thread of the exchange is the node's own.
void ActiveRun::make_crew() {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 1; i < workers_for(context_.threads_for(job_)); ++i) workers.push_back(member_->make_worker());
  EventQueue& queue = context_.queue;
  crew_ = std::make_unique<Crew>(std::move(workers), timeline_,
                                 Crew::Hooks{[&queue, key = identity_.key](MadeFrame total) {
                                               queue.post(TotalMade{key, std::move(total)});
                                             },
                                             [&queue, key = identity_.key](Piece piece, PieceResult result) {
                                               queue.post(PieceDone{key, std::move(piece), std::move(result)});
                                             }});
}

void ActiveRun::on_committed(const Member::Committed& committed) {
  ++context_.progress.count;
  context_.progress.step = committed.step;
  numbers_.committed(committed, context_.mesh.sent_bytes());
  watch_stragglers();
  publish(committed.ends);
  if (!committed.ends) numbers_.write_metrics(false);
}

void ActiveRun::on_evaluated(const Evaluated& event) {
  if (begun()) member_->evaluated(event.step, event.counts);
}

void ActiveRun::on_reported(const std::optional<Member::Evaluation>& evaluation) {
  if (evaluation) numbers_.evaluated(*evaluation);
  numbers_.write_metrics(evaluation.has_value());
  publish(true);
}

void ActiveRun::on_compute_failed(const std::string& message) {
  member_->fail(context_.config.rank(), "compute", context_.config.node + ": the engine failed: " + message);
}

void ActiveRun::request_stop() {
  if (!begun()) return;
  member_->request_stop();
  show_stopping();
}

void ActiveRun::show_stopping() {
  schema::RunStatus& status = numbers_.status();
  if (status.state == schema::RunState::kStopping) return;
  status.state = schema::RunState::kStopping;
  status.since_ms = unix_time_ms();
  publish(true);
}

void ActiveRun::send_frame(const std::vector<Rank>& to, const schema::SharedFrame& frame) {
  if (const std::optional<Rank> full = context_.mesh.send(to, frame))
    member_->fail(*full, "send",
                  context_.names[*full] + " takes no frames any more: " + std::to_string(Mesh::kMostWaitingFrames) +
                      " wait for it");
}

ActiveRun::Outcome ActiveRun::outcome() const { return {member_->failed(), member_->stopping(), member_->finished()}; }

Exchange::Waiting ActiveRun::waiting() const { return begun() ? member_->waiting() : Exchange::Waiting{}; }

// --- watching ---

std::uint64_t ActiveRun::step_timeout_ms() const {
  return std::max(job_.step_timeout_ms, static_cast<std::uint64_t>(10'000 * numbers_.median_step_seconds()));
}

// Everybody alive, nobody stuck in its own work, and still nothing comes: a frame was lost on the way.
void ActiveRun::tick() {
  if (!begun() || member_->failed()) return;
  if (member_->stopping()) show_stopping();
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
  const std::string phase = member_->reporting() ? "evaluate" : std::string(schema::phase_name(waits.phase));
  const Rank first = waits.ranks.front();
  member_->fail(first, phase,
                context_.config.node + " has waited " + std::to_string(limit.count() / 1000) + " s for " +
                    context_.names[first] + " in " + phase + " of step " + std::to_string(numbers_.status().step) +
                    ": it is alive but its frames do not come");
}

void ActiveRun::waited(const Exchange::Waiting& waiting, Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - since).count();
  numbers_.waited(waiting.ranks, seconds);
  if (now - since < kOwnSleep)
    stragglers_.waited(waiting.ranks, waiting.late, seconds);
  else
    committed_ += now - since;
  if (timeline_->on() && !waiting.ranks.empty())
    timeline_->add(Timeline::Track::kNode, "wait", member_->step(), since, now);
}

void ActiveRun::watch_stragglers() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - std::exchange(committed_, now)).count();
  const StragglerWatch::Change change = stragglers_.committed(seconds);
  const std::uint64_t step = context_.progress.step;
  if (change.over)
    context_.log.info("straggler-over",
                      {{"run", identity_.id}, {"step", step}, {"waited-for", context_.names[*change.over]}});
  if (change.begun)
    context_.log.info("straggler", {{"run", identity_.id},
                                    {"step", step},
                                    {"waiting-for", context_.names[change.begun->rank]},
                                    {"share-of-time", change.begun->share}});
}

void ActiveRun::note_digests(const std::vector<std::uint64_t>& digests) {
  numbers_.digest(Replica::combine(digests), prepared_->replica->committed_steps());
}

void ActiveRun::publish(bool now) {
  const Clock::time_point time = Clock::now();
  if (!now && time - published_ < kPublishEvery) return;
  published_ = time;
  numbers_.refresh();
  context_.store.update(numbers_.status());
}

Status ActiveRun::save(schema::RunState state, const std::string& reason) {
  schema::RunStatus& status = numbers_.status();
  status.state = state;
  status.reason = reason;
  status.since_ms = unix_time_ms();
  note_digests(prepared_->replica->segment_digests());
  publish(true);
  numbers_.flush_metrics();
  context_.progress.phase = schema::Phase::kSave;
  const std::string directory = context_.store.directory(identity_.id);
  Status written = write_artefacts(directory, prepared_->model.segments, *prepared_->replica,
                                   {{"format", "pt"},
                                    {"run", identity_.id},
                                    {"step", std::to_string(status.step)},
                                    {"digest", hex_digest(status.digest)}});
  if (timeline_->on()) {
    timeline_->stop();
    if (Status traced = timeline_->write(directory + "/trace.json"); written.ok()) written = traced;
  }
  record_.status = status;
  Status recorded = context_.store.write(record_);
  context_.progress.phase = schema::Phase::kIdle;
  return written.ok() ? recorded : written;
}

}  // namespace tg::daemon

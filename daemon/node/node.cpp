#include "daemon/node/node.h"

#include <random>

#include "daemon/membership/choose_exchange.h"
#include "daemon/node/run_id.h"

namespace tg::daemon {
namespace {

constexpr std::uint64_t kTickMs = 20;
constexpr std::uint64_t kLastWordsMs = 300;
constexpr int kGoodbyeLingerMs = 500;

std::uint64_t micros_of(std::chrono::steady_clock::time_point time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

}  // namespace

Node::Node(const RunContext& context, ControlServer& control)
    : context_(context),
      control_(control),
      membership_([&] {
        MembershipOptions options;
        options.names = context.names;
        options.self = context.config.rank();
        return options;
      }()),
      advisor_(context, control),
      bursts_(context.names.size()) {}

std::uint64_t Node::now_ms() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count());
}

std::uint64_t Node::draw() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

void Node::run() {
  while (!done_) {
    take_event();
    tick();
    take_votes();
    act();
  }
  context_.mesh.close(kGoodbyeLingerMs);
}

void Node::take_event() {
  std::optional<Event> event;
  std::size_t taken = 0;
  while (!done_ && taken < (run_ ? run_->events_at_once() : 1) &&
         (event = context_.queue.pop(std::chrono::milliseconds(0)))) {
    std::visit([this](auto& one) { on(one); }, *event);
    ++taken;
  }
  if ((run_ && run_->work()) || taken > 0) return;
  Exchange::Waiting waiting;
  if (run_) waiting = run_->waiting();
  if (!waiting.ranks.empty()) context_.progress.phase = waiting.phase;
  const Clock::time_point start = Clock::now();
  event = context_.queue.pop(std::chrono::milliseconds(kTickMs));
  if (!waiting.ranks.empty() || !waiting.late.empty()) run_->waited(waiting, start);
  if (event) std::visit([this](auto& one) { on(one); }, *event);
}

// What a vote says may be known long after the event that began it: the link's measurement has a deadline of its own.
void Node::take_votes() {
  if (run_ && !run_->begun())
    if (const std::optional<schema::Vote> vote = run_->take_vote())
      membership_.prepared(run_->identity().key, *vote, now_ms());
  if (dry_run_)
    if (const std::optional<schema::Vote> vote = dry_run_->take_vote()) finish_dry_run(*vote);
}

void Node::tick() {
  const std::uint64_t now = now_ms();
  if (now - last_tick_ms_ < kTickMs) return;
  last_tick_ms_ = now;
  context_.mesh.tick(now);
  give_up_broken_connections(now);
  membership_.tick(now);
  advisor_.tick();
  if (!run_ || !run_->begun()) return;
  run_->tick();
  const std::uint64_t timeout = run_->step_timeout_ms();
  if (timeout == step_timeout_ms_) return;
  step_timeout_ms_ = timeout;
  control_.set_step_timeout(timeout);
}

// --- events ---

void Node::on(FrameArrived& event) {
  const schema::FrameBody& body = event.frame.body;
  if (const auto* probe = std::get_if<schema::Probe>(&body)) {
    const BurstMeter::Frame frame{event.frame.header.run, probe->burst, probe->last};
    if (const auto micros = bursts_.arrived(event.from, frame, micros_of(event.at)))
      context_.mesh.send({event.from}, schema::encode_frame(event.frame.header,
                                                            schema::ProbeReply{probe->burst, *micros}, context_.pool));
    return;
  }
  if (const auto* reply = std::get_if<schema::ProbeReply>(&body)) {
    if (is_current(event.frame.header.run)) run_->on_probe_reply(event.from, *reply);
    if (dry_run_ && dry_run_->identity().key == event.frame.header.run) dry_run_->on_probe_reply(event.from, *reply);
    advisor_.on_probe_reply(event.frame.header.run, event.from, *reply);
    return;
  }
  const bool of_a_step = std::holds_alternative<schema::StepFrame>(body) ||
                         std::holds_alternative<schema::Scalers>(body) || std::holds_alternative<schema::Chunk>(body) ||
                         std::holds_alternative<schema::Credit>(body) || std::holds_alternative<schema::Report>(body);
  if (!of_a_step)
    membership_.frame(event.from, event.frame.header, body, now_ms());
  else if (is_current(event.frame.header.run))
    run_->on_frame(event.from, event.frame, std::move(event.keep));
  const auto* report = std::get_if<schema::Report>(&body);
  if (report != nullptr && report->last && is_current(event.frame.header.run)) membership_.peer_finished(event.from);
}

void Node::on(ConnectionChanged& event) {
  const auto broken = broken_.find(event.peer);
  if (event.up && broken != broken_.end()) {  // back already, without the frames that were on their way
    broken->second.up_again = true;
    return;
  }
  if (event.up || !run_ || !run_->begun()) return membership_.connection(event.peer, event.up, now_ms());
  // In a run a peer's last words (a goodbye, a report, the cause of its failure) may arrive just after its connection
  // broke.
  broken_[event.peer] = {false, now_ms(),
                         context_.config.node + " lost the connection to " + context_.names[event.peer] + " in " +
                             std::string(schema::phase_name(context_.progress.phase)) + " of step " +
                             std::to_string(context_.progress.step)};
}

void Node::give_up_broken_connections(std::uint64_t now) {
  for (auto at = broken_.begin(); at != broken_.end();) {
    if (now - at->second.since_ms < kLastWordsMs) {
      ++at;
      continue;
    }
    const auto [peer, broken] = *at;
    at = broken_.erase(at);
    membership_.lost(peer, broken.message, now);
    membership_.connection(peer, false, now);
    if (broken.up_again) membership_.connection(peer, true, now);
  }
}

void Node::on(PeerLost& event) {
  const auto state = membership_.state();
  if (event.only_in_a_run && (!state || *state == schema::RunState::kPending)) return;
  const RunIdentity* current = membership_.current();
  if (!event.run_id.empty() && (current == nullptr || current->id != event.run_id)) return;  // of a run that has ended
  membership_.lost(event.peer, event.message, now_ms());
}

void Node::on(RunPrepared& event) {
  if (dry_run_ && dry_run_->identity().key == event.key) return dry_run_->on_prepared(std::move(event.result));
  if (is_current(event.key)) run_->on_prepared(std::move(event.result));
}

void Node::on(BucketReady& event) {
  if (is_current(event.key)) run_->on_bucket_ready(event);
}

void Node::on(Evaluated& event) {
  if (is_current(event.key)) run_->on_evaluated(event);
}

void Node::on(TotalMade& event) {
  if (is_current(event.key)) run_->on_total_made(event.total);
}

void Node::on(PieceDone& event) {
  if (is_current(event.key)) run_->on_piece_done(event.piece, std::move(event.result));
}

void Node::on(ComputeFailed& event) {
  const Error unprepared{ErrorKind::kFailed, context_.config.node + " cannot prepare the run: " + event.message};
  if (dry_run_ && dry_run_->identity().key == event.key) return dry_run_->on_prepared(unprepared);
  if (!is_current(event.key)) return;
  if (run_->begun()) return run_->on_compute_failed(event.message);
  run_->on_prepared(unprepared);
}

void Node::on(ShutDown&) {
  membership_.shut_down(now_ms());
  act();
  done_ = true;
}

void Node::on(ControlCall& event) {
  if (const auto* request = std::get_if<schema::StartRequest>(&event.body)) return start(event.token, *request);
  if (const auto* request = std::get_if<schema::StopRequest>(&event.body)) return stop(event.token, *request);
  const bool busy = run_ || dry_run_;
  if (const auto* request = std::get_if<schema::BenchRequest>(&event.body))
    return advisor_.bench(event.token, *request, draw(), busy);
  if (const auto* request = std::get_if<schema::ForecastRequest>(&event.body))
    return advisor_.plan(event.token, *request, draw(), busy);
}

void Node::start(std::uint64_t token, const schema::StartRequest& request) {
  const auto refuse = [&](Error error) { control_.reply(token, std::move(error)); };
  Result<schema::JobSpec> job = schema::parse_job(request.spec, "job");
  if (!job.ok()) return refuse(job.error());
  const std::size_t members = context_.names.size();
  if (const Status valid = schema::validate_job(*job, members); !valid.ok()) return refuse(valid.error());
  RunIdentity identity{draw(), request.run_id, schema::canonical_job(*job), job->start_timeout_ms};
  if (identity.id.empty()) identity.id = draw_run_id(job->model, unix_time_ms(), draw());
  if (!valid_run_id(identity.id))
    return refuse({ErrorKind::kUsage, "run id '" + identity.id + "' is not made of a-z, 0-9, '-', '_', '.' (at most " +
                                          std::to_string(schema::kMostRunIdBytes) + ")"});
  if (context_.store.exists(identity.id))
    return refuse({ErrorKind::kRefused, "run " + identity.id + " exists already; choose another --id"});
  if (request.dry_run) {
    if (dry_run_ || run_ || advisor_.measuring())
      return refuse(
          {ErrorKind::kRefused, "this node is busy with a run or a measurement; ask again when it has ended"});
    dry_run_token_ = token;
    dry_run_ = std::make_unique<ActiveRun>(context_, std::move(identity), std::move(job).value());
    return;
  }
  membership_.start(token, identity, now_ms());
  if (const RunIdentity* current = membership_.current(); current != nullptr && current->key == identity.key)
    show(identity, *job, schema::RunState::kPending);
}

// A run that has not begun is shown by status too, but not recorded.
void Node::show(const RunIdentity& identity, const schema::JobSpec& job, schema::RunState state) {
  schema::RunStatus status;
  status.id = shown_id_ = identity.id;
  status.state = state;
  status.since_ms = status.started_ms = unix_time_ms();
  status.model = job.model;
  status.data = job.data;
  status.gradients = job.gradients;
  status.steps = job.steps;
  for (const std::string& name : context_.names) status.members.push_back({name, state, 0, 0, 0, 0});
  context_.store.update(status);
}

void Node::finish_dry_run(const schema::Vote& vote) {
  if (!vote.accepted) return answer_dry_run(Error{vote.kind, vote.message});
  advisor_.foresee({dry_run_->job(), context_.names.size()}, draw(), run_ != nullptr,
                   [this, vote](const Result<Forecast>& forecast) {
                     // The other members are taken to be like this one.
                     const std::vector<schema::Vote> votes(context_.names.size(), vote);
                     schema::PlanReply plan = dry_run_->plan_reply(
                         forecast ? forecast->chosen : choose_exchange(asked_of(dry_run_->job()), votes).commit);
                     Advisor::add(plan, forecast);
                     answer_dry_run(std::move(plan));
                   });
}

void Node::answer_dry_run(schema::ReplyBody reply) {
  control_.reply(dry_run_token_, std::move(reply));
  dry_run_.reset();
  context_.progress.phase = schema::Phase::kIdle;
}

void Node::stop(std::uint64_t token, const schema::StopRequest& request) {
  const RunIdentity* current = membership_.current();
  const Result<std::string> resolved = context_.store.resolve(request.run);  // it knows the current run, too
  if (!resolved.ok() && resolved.error().kind == ErrorKind::kUsage) return control_.reply(token, resolved.error());
  const std::string id = resolved.ok() ? *resolved : request.run;
  if (current != nullptr && current->id == id) {
    const Status stopped = membership_.stop(current->id, now_ms());
    if (!stopped.ok()) return control_.reply(token, stopped.error());
    return control_.reply(token, schema::StopReply{current->id, schema::RunState::kStopping});
  }
  const std::optional<RunRecord> record = context_.store.find(id);
  if (!record)
    return control_.reply(token, Error{ErrorKind::kNotFound, "no run '" + request.run + "'; list them: tgctl list"});
  control_.reply(token, schema::StopReply{record->id, record->status.state});
}

}  // namespace tg::daemon

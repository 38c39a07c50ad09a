#include "daemon/membership/run_lifecycle.h"

#include "kernels/base/check.h"

namespace tg::daemon {

void RunLifecycle::begin(RunIdentity run, View view, Seat proposer, ExchangeChoice choice) {
  enter(std::move(run), std::move(view), proposer, choice.commit);
  out_.emit(BeginRun{run_, std::move(choice)});
}

void RunLifecycle::join(RunIdentity run, const schema::NextView& view, Seat donor, const schema::Commit& choice) {
  enter(std::move(run), View(view, peers_.names()), donor, choice);
  out_.emit(JoinRun{run_, choice, view});
}

void RunLifecycle::enter(RunIdentity run, View view, Seat proposer, const schema::Commit& choice) {
  TG_CHECK(!is_active(), run.id);
  phase_ = Phase::kRunning;
  run_ = std::move(run);
  choice_ = choice;
  view_ = std::move(view);
  proposer_ = proposer;
  stop_asked_ = false;
  finished_.assign(Peers::kMax, false);
  unreachable_.assign(Peers::kMax, false);
  end_reports_.assign(Peers::kMax, std::nullopt);
  blamed_.clear();
  outcome_sync_.forget(run_.id);
}

schema::RunState RunLifecycle::state() const {
  TG_CHECK(is_active());
  const bool stops = phase_ == Phase::kSaving ? was_stopping_ : phase_ == Phase::kStopping;
  return stops ? schema::RunState::kStopping : schema::RunState::kRunning;
}

void RunLifecycle::stop() {
  if (!is_running()) return;  // already ended
  if (!stop_asked_) out_.emit(RequestStop{run_.run_key});
  stop_asked_ = true;
}

void RunLifecycle::on_stopping() {
  if (phase_ == Phase::kRunning) phase_ = Phase::kStopping;
}

void RunLifecycle::on_peer_finished(Seat peer) {
  if (is_running()) finished_[peer] = true;
}

// Last reports count in their view only. The stop flag may have been in the step that was thrown away.
void RunLifecycle::on_view_installed(View view) {
  if (!is_running()) return;
  view_ = std::move(view);
  finished_.assign(Peers::kMax, false);
  for (const Seat seat : view_.seats()) end_reports_[seat].reset();  // members that have rejoined report again
  if (stop_asked_ || phase_ == Phase::kStopping) out_.emit(RequestStop{run_.run_key});
}

void RunLifecycle::on_connected(Seat peer) {
  if (is_running()) unreachable_[peer] = false;
}

void RunLifecycle::on_peer_lost(Seat peer, std::uint64_t now_ms) {
  if (!is_active()) return;
  unreachable_[peer] = peer != peers_.self();
  if (phase_ == Phase::kSaving) try_to_conclude(now_ms);
}

void RunLifecycle::finish(schema::RunState state, const std::string& reason) {
  TG_CHECK(schema::is_authoritative(state));
  if (is_running()) begin_saving(state, reason);
}

void RunLifecycle::fail(FailureCause cause, const schema::Fail& what) {
  if (!is_running()) return;
  send(peers_.others(), what);
  begin_saving(policy_for(cause).end.value(), what.message, what.node);
}

void RunLifecycle::say_goodbye() {
  shut_down_ = true;
  if (is_running()) send(peers_.others(), schema::Goodbye{peers_.own_name() + " was shut down"});
}

// Members that continue the run report no end; if all are shut down they do.
void RunLifecycle::interrupt(FailureCause cause, const std::string& reason) {
  if (!is_running()) return;
  by_user_ = cause == FailureCause::kStopWhilePaused || cause == FailureCause::kLeaveRequested;
  if (cause != FailureCause::kLocalShutdown) unreachable_.assign(Peers::kMax, true);
  begin_saving(policy_for(cause).end.value(), reason);
}

void RunLifecycle::begin_saving(schema::RunState state, const std::string& reason, const std::string& blamed) {
  was_stopping_ = phase_ == Phase::kStopping;
  phase_ = Phase::kSaving;
  blamed_ = blamed;
  end_state_ = state;
  out_.emit(SaveRun{run_.run_key, run_.id, state, reason});
}

void RunLifecycle::on_saved(std::uint64_t run_key, const schema::Ended& own, std::uint64_t now_ms) {
  if (!is_run(run_key) || phase_ != Phase::kSaving) return outcome_sync_.on_saved(run_key, own);
  end_reports_[peers_.self()] = own;
  saved_ms_ = now_ms;
  std::vector<Seat> heard, unheard;
  for (const Seat peer : peers_.others()) (end_reports_[peer] ? heard : unheard).push_back(peer);
  schema::Ended asking = own;
  asking.asks = true;
  send(std::move(heard), own);
  send(std::move(unheard), std::move(asking));
  try_to_conclude(now_ms);
}

void RunLifecycle::shut_down(std::uint64_t now_ms) {
  shut_down_ = true;
  if (phase_ == Phase::kSaving) try_to_conclude(now_ms);  // the Goodbye follows the outcome
}

void RunLifecycle::tick(std::uint64_t now_ms) {
  if (phase_ == Phase::kSaving) try_to_conclude(now_ms);
}

// Concludes once every member that may still report has reported.
void RunLifecycle::try_to_conclude(std::uint64_t now_ms) {
  if (!end_reports_[peers_.self()]) return;
  const bool leaves = shut_down_ && now_ms >= saved_ms_ + timeouts_.leaving_ms;
  for (const Seat peer : peers_.others()) {
    if (end_reports_[peer] || unreachable_[peer] || leaves || !view_.has(peer)) continue;
    if (peers_.name(peer) != blamed_ || now_ms < saved_ms_ + timeouts_.blamed_ms) return;
  }
  phase_ = Phase::kNone;
  Per<Seat, bool> members(Peers::kMax);
  for (const Seat seat : peers_.names().all()) members[seat] = true;
  const RunOutcome end = resolve_outcome(end_reports_, peers_.self());
  out_.emit(EndRun{run_.run_key, run_.id, end.truth.state, end.truth.reason, end,
                   by_user_ && end.truth.state == schema::RunState::kInterrupted});
  outcome_sync_.add(run_.run_key, {run_.id, std::move(members), end});
  if (shut_down_) return send(peers_.others(), schema::Goodbye{peers_.own_name() + " was shut down"});
  for (const Seat peer : peers_.others())
    if (peers_.connected(peer)) outcome_sync_.on_connected(peer);
}

void RunLifecycle::on_fail(Seat from, const schema::Fail& cause) {
  if (is_running() && view_.has(from))
    begin_saving(policy_for(FailureCause::kPeerFailure).end.value(), cause.message, cause.node);
}

void RunLifecycle::on_ended(Seat from, std::uint64_t run_key, const schema::Ended& ended, std::uint64_t now_ms) {
  if (!is_run(run_key)) return outcome_sync_.on_ended(from, run_key, ended);
  end_reports_[from] = ended;
  end_reports_[from]->asks = false;
  if (is_running()) {
    if (schema::is_authoritative(ended.state)) return begin_saving(ended.state, ended.reason);
    if (ended.state == schema::RunState::kFailed && view_.has(from))
      begin_saving(policy_for(FailureCause::kPeerFailure).end.value(), ended.reason);
    return;
  }
  const std::optional<schema::Ended>& own = end_reports_[peers_.self()];
  if (ended.asks && own) send({from}, *own);
  try_to_conclude(now_ms);
}

void RunLifecycle::on_late_frame(Seat from, std::uint64_t run_key) {
  if (!is_run(run_key)) return outcome_sync_.answer(from, run_key);
  if (phase_ == Phase::kSaving && end_reports_[peers_.self()]) send({from}, *end_reports_[peers_.self()]);
}

}  // namespace tg::daemon

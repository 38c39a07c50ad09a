#include "daemon/membership/end.h"

#include "kernels/base/check.h"

namespace tg::daemon {

void End::begin(RunIdentity run, View view, Seat proposer, Choice choice) {
  enter(std::move(run), std::move(view), proposer, choice.commit);
  out_.emit(BeginRun{run_, std::move(choice)});
}

void End::join(RunIdentity run, const schema::NextView& view, Seat host, const schema::Commit& choice) {
  enter(std::move(run), View(view), host, choice);
  out_.emit(JoinRun{run_, choice, view});
}

void End::enter(RunIdentity run, View view, Seat proposer, const schema::Commit& choice) {
  TG_CHECK(!active(), run.id);
  phase_ = Phase::kRunning;
  run_ = std::move(run);
  choice_ = choice;
  view_ = std::move(view);
  proposer_ = proposer;
  stop_asked_ = false;
  finished_.assign(peers_.size(), false);
  gone_.assign(peers_.size(), false);
  ends_.assign(peers_.size(), std::nullopt);
  blamed_.clear();
  aftermath_.begins_anew(run_.id);
}

schema::RunState End::state() const {
  TG_CHECK(active());
  const bool stops = phase_ == Phase::kSaving ? was_stopping_ : phase_ == Phase::kStopping;
  return stops ? schema::RunState::kStopping : schema::RunState::kRunning;
}

void End::stop() {
  if (!runs()) return;  // it has already ended
  if (!stop_asked_) out_.emit(AskStop{run_.key});
  stop_asked_ = true;
}

void End::stopping() {
  if (phase_ == Phase::kRunning) phase_ = Phase::kStopping;
}

void End::peer_finished(Seat peer) {
  if (runs()) finished_[peer] = true;
}

// Last reports count in their view only. The flag that asks for a stop may have been in the step that was thrown away.
void End::install(View view) {
  if (!runs()) return;
  view_ = std::move(view);
  finished_.assign(peers_.size(), false);
  for (const Seat seat : view_.seats()) ends_[seat].reset();  // of who was away, and is back
  if (stop_asked_ || phase_ == Phase::kStopping) out_.emit(AskStop{run_.key});
}

void End::connected(Seat peer) {
  if (runs()) gone_[peer] = false;
}

void End::lost(Seat peer, std::uint64_t now_ms) {
  if (!active()) return;
  gone_[peer] = peer != peers_.self();
  if (phase_ == Phase::kSaving) settle(now_ms);
}

void End::finished(schema::RunState state, const std::string& reason) {
  TG_CHECK(schema::is_fact(state));
  if (runs()) end(state, reason);
}

void End::failed(Cause cause, const schema::Fail& what) {
  if (!runs()) return;
  send(peers_.others(), what);
  end(row_of(cause).end.value(), what.message, what.node);
}

void End::leaves() {
  shut_down_ = true;
  if (runs()) send(peers_.others(), schema::Goodbye{peers_.own_name() + " was shut down"});
}

// Who goes on has no word of an end. Where all are shut down they have.
void End::interrupted(Cause cause, const std::string& reason) {
  if (!runs()) return;
  by_order_ = cause == Cause::kStopWhilePaused || cause == Cause::kToldToLeave;
  if (cause != Cause::kOwnShutDown) gone_.assign(peers_.size(), true);
  end(row_of(cause).end.value(), reason);
}

void End::end(schema::RunState state, const std::string& reason, const std::string& blamed) {
  was_stopping_ = phase_ == Phase::kStopping;
  phase_ = Phase::kSaving;
  blamed_ = blamed;
  ended_as_ = state;
  out_.emit(SaveRun{run_.key, run_.id, state, reason});
}

void End::saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms) {
  if (!is(key) || phase_ != Phase::kSaving) return aftermath_.saved(key, own);
  ends_[peers_.self()] = own;
  saved_ms_ = now_ms;
  std::vector<Seat> heard, unheard;
  for (const Seat peer : peers_.others()) (ends_[peer] ? heard : unheard).push_back(peer);
  schema::Ended asking = own;
  asking.asks = true;
  send(std::move(heard), own);
  send(std::move(unheard), std::move(asking));
  settle(now_ms);
}

void End::shut_down(std::uint64_t now_ms) {
  shut_down_ = true;
  if (phase_ == Phase::kSaving) settle(now_ms);  // and the goodbye follows the verdict
}

void End::tick(std::uint64_t now_ms) {
  if (phase_ == Phase::kSaving) settle(now_ms);
}

// Gives the verdict as soon as every member that may still speak has spoken.
void End::settle(std::uint64_t now_ms) {
  if (!ends_[peers_.self()]) return;
  const bool leaves = shut_down_ && now_ms >= saved_ms_ + timeouts_.leaving_ms;
  for (const Seat peer : peers_.others()) {
    if (ends_[peer] || gone_[peer] || leaves || !view_.has(peer)) continue;
    if (peers_.name(peer) != blamed_ || now_ms < saved_ms_ + timeouts_.blamed_ms) return;
  }
  phase_ = Phase::kNone;
  Per<Seat, bool> members(peers_.size(), true);
  const RunEnd end = settled(ends_, peers_.self());
  out_.emit(EndRun{run_.key, run_.id, end.truth.state, end.truth.reason, end,
                   by_order_ && end.truth.state == schema::RunState::kInterrupted});
  aftermath_.add(run_.key, {run_.id, std::move(members), end});
  if (shut_down_) return send(peers_.others(), schema::Goodbye{peers_.own_name() + " was shut down"});
  for (const Seat peer : peers_.others())
    if (peers_.connected(peer)) aftermath_.connected(peer);
}

void End::on_fail(Seat from, const schema::Fail& cause) {
  if (runs() && view_.has(from)) end(row_of(Cause::kHeardFailure).end.value(), cause.message, cause.node);
}

void End::on_ended(Seat from, std::uint64_t key, const schema::Ended& ended, std::uint64_t now_ms) {
  if (!is(key)) return aftermath_.heard(from, key, ended);
  ends_[from] = ended;
  ends_[from]->asks = false;
  if (runs()) {
    if (schema::is_fact(ended.state)) return end(ended.state, ended.reason);
    if (ended.state == schema::RunState::kFailed && view_.has(from))
      end(row_of(Cause::kHeardFailure).end.value(), ended.reason);
    return;
  }
  const std::optional<schema::Ended>& own = ends_[peers_.self()];
  if (ended.asks && own) send({from}, *own);
  settle(now_ms);
}

void End::asked(Seat from, std::uint64_t key) {
  if (!is(key)) return aftermath_.asked(from, key);
  if (phase_ == Phase::kSaving && ends_[peers_.self()]) send({from}, *ends_[peers_.self()]);
}

}  // namespace tg::daemon

#include "daemon/membership/membership.h"

#include <algorithm>
#include <utility>

#include "daemon/membership/words.h"
#include "kernels/base/check.h"

namespace tg::daemon {

Membership::Membership(MembershipOptions options) : options_(std::move(options)) {
  TG_CHECK(options_.self < options_.names.size(), options_.self, options_.names.size());
  connected_.assign(options_.names.size(), false);
  connected_[options_.self] = true;
}

// --- state ---

std::vector<MembershipAction> Membership::take_actions() { return std::exchange(actions_, {}); }

bool Membership::idle() const { return phase_ == Phase::kIdle; }

const RunIdentity* Membership::current() const { return idle() ? nullptr : &run_; }

std::optional<schema::RunState> Membership::state() const {
  switch (phase_) {
    case Phase::kIdle:
      return std::nullopt;
    case Phase::kConnecting:
    case Phase::kClaiming:
      return schema::RunState::kPending;
    case Phase::kProposing:
    case Phase::kPreparing:
    case Phase::kVoted:
      return schema::RunState::kStarting;
    case Phase::kRunning:
      return schema::RunState::kRunning;
    case Phase::kStopping:
      return schema::RunState::kStopping;
  }
  return std::nullopt;
}

std::vector<Rank> Membership::others() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < options_.names.size(); ++rank)
    if (rank != options_.self) ranks.push_back(rank);
  return ranks;
}

std::vector<Rank> Membership::disconnected() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < connected_.size(); ++rank)
    if (!connected_[rank]) ranks.push_back(rank);
  return ranks;
}

std::string Membership::names_of(const std::vector<Rank>& ranks) const {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ", ") + name(rank);
  return text;
}

// Why a claim or start is refused; "" if the right to propose is free. A run that still waits for its members does not
// hold the right.
std::string Membership::taken_message() const {
  const bool reserved = phase_ >= Phase::kProposing;
  if (!reserved && !holder_) return "";
  const std::string id = reserved ? run_.id : holder_->id;
  const std::string_view state = schema::run_state_name(reserved ? *this->state() : schema::RunState::kStarting);
  return "run " + id + " is already " + std::string(state) + ", proposed by " +
         name(reserved ? proposer_ : holder_->rank) + "; wait for it, or stop it: tgctl stop " + id;
}

void Membership::send(std::vector<Rank> to, std::uint64_t key, schema::FrameBody body) {
  if (to.empty()) return;
  act(SendFrame{std::move(to), schema::FrameHeader{key, kView, 0}, std::move(body)});
}

void Membership::answer(Error error) {
  if (!token_) return;
  act(AnswerStart{*token_, run_.id, Status(std::move(error))});
  token_.reset();
}

void Membership::reserve(Phase phase, RunIdentity run, Rank proposer, std::uint64_t deadline_ms) {
  phase_ = phase;
  run_ = std::move(run);
  proposer_ = proposer;
  deadline_ms_ = deadline_ms;
  token_.reset();
  votes_.assign(options_.names.size(), std::nullopt);
  trouble_.reset();
  own_vote_.reset();
  stop_asked_ = false;
  finished_.assign(options_.names.size(), false);
}

void Membership::become_idle() {
  TG_CHECK(!token_, run_.id);
  phase_ = Phase::kIdle;
}

// --- events ---

void Membership::connection(Rank peer, bool up, std::uint64_t now_ms) {
  TG_CHECK(peer < connected_.size() && peer != options_.self, peer);
  if (connected_[peer] == up) return;
  connected_[peer] = up;
  if (up) {
    if (phase_ == Phase::kConnecting) try_to_claim(now_ms);
    if (phase_ == Phase::kPreparing && own_vote_) try_to_vote(now_ms);
    return;
  }
  if (holder_ && holder_->rank == peer) holder_.reset();
  // While a member prepares no frame but its vote is due: a connection that comes back does no harm.
  if (phase_ == Phase::kPreparing && peer != proposer_) return;
  lost(peer, own_name() + " lost the connection to " + name(peer), now_ms);
}

void Membership::lost(Rank peer, const std::string& message, std::uint64_t /*now_ms*/) {
  TG_CHECK(peer < connected_.size(), peer);
  const schema::Fail cause{ErrorKind::kUnreachable, name(peer), "", message};
  switch (phase_) {
    case Phase::kIdle:
    case Phase::kConnecting:
      return;
    case Phase::kClaiming:
      if (connected_[kGranter]) return;
      phase_ = Phase::kConnecting;  // claimed again when it is back
      deadline_ms_ = start_deadline_ms_;
      return;
    case Phase::kProposing:
      return fail_proposal(cause);
    case Phase::kPreparing:
    case Phase::kVoted:
      if (peer == proposer_) return drop();
      return take_back_vote(cause);
    case Phase::kRunning:
    case Phase::kStopping:
      if (!finished_[peer]) fail_run({ErrorKind::kRunFailed, name(peer), "", message});
      return;
  }
}

void Membership::prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms) {
  if (!current_is(key)) return;
  if (phase_ == Phase::kProposing) return take_vote(options_.self, vote);
  if (phase_ != Phase::kPreparing || own_vote_) return;
  own_vote_ = vote;
  // Members connect to each other at their own pace; the proposer's word is only about its own connections.
  deadline_ms_ = now_ms + options_.claim_timeout_ms;
  try_to_vote(now_ms);
}

void Membership::try_to_vote(std::uint64_t now_ms) {
  schema::Vote vote = *own_vote_;
  const std::vector<Rank> missing = disconnected();
  if (vote.accepted && trouble_) {
    vote = {false, trouble_->kind, trouble_->message};
  } else if (vote.accepted && !missing.empty()) {
    if (now_ms < deadline_ms_) return;
    vote = {false, ErrorKind::kUnreachable, own_name() + " is not connected to " + names_of(missing)};
  }
  phase_ = Phase::kVoted;
  deadline_ms_ = now_ms + options_.prepare_timeout_ms;
  send({proposer_}, run_.key, vote);
}

Status Membership::stop(const std::string& run_id, std::uint64_t /*now_ms*/) {
  if (idle() || run_.id != run_id)
    return Error{ErrorKind::kNotFound, "no run " + run_id + " is in progress on " + own_name()};
  const std::string reason = "run " + run_id + " was stopped at " + own_name() + " before it began";
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kClaiming:
      end_pending(schema::RunState::kStopped, ErrorKind::kRefused, reason);
      break;
    case Phase::kProposing:
      fail_proposal({ErrorKind::kRefused, own_name(), "prepare", reason});
      break;
    case Phase::kPreparing:
    case Phase::kVoted:
      // The proposer ends the proposal when it reads this; if it has committed by then, the run stops at once.
      if (!stop_asked_) send({proposer_}, run_.key, schema::Vote{false, ErrorKind::kRefused, reason});
      stop_asked_ = true;
      break;
    default:
      if (!stop_asked_) act(AskStop{run_.key});
      stop_asked_ = true;
  }
  return {};
}

void Membership::failed(const schema::Fail& cause, std::uint64_t /*now_ms*/) {
  if (begun()) return fail_run(cause);
  if (phase_ == Phase::kProposing) return fail_proposal(cause);
  if (phase_ == Phase::kPreparing || phase_ == Phase::kVoted) take_back_vote(cause);
}

void Membership::finished(schema::RunState state, const std::string& reason, std::uint64_t /*now_ms*/) {
  TG_CHECK(schema::is_final(state));
  if (begun()) end_run(state, reason);
}

void Membership::stopping() {
  if (phase_ == Phase::kRunning) phase_ = Phase::kStopping;
}

void Membership::peer_finished(Rank peer) {
  TG_CHECK(peer < options_.names.size(), peer);
  if (begun()) finished_[peer] = true;
}

void Membership::shut_down(std::uint64_t /*now_ms*/) {
  if (shut_down_) return;
  shut_down_ = true;
  holder_.reset();
  const std::string reason = own_name() + " was shut down";
  const std::uint64_t key = idle() ? 0 : run_.key;
  switch (phase_) {
    case Phase::kIdle:
      break;
    case Phase::kConnecting:
    case Phase::kClaiming:
      end_pending(schema::RunState::kFailed, ErrorKind::kRefused, reason);
      break;
    case Phase::kProposing:
      fail_proposal({ErrorKind::kRefused, own_name(), "prepare", reason});
      break;
    case Phase::kPreparing:
    case Phase::kVoted:
      drop();
      break;
    case Phase::kRunning:
    case Phase::kStopping:
      send(others(), key, schema::Goodbye{reason});  // first: saving takes its time
      end_run(schema::RunState::kFailed, reason);
      return;
  }
  send(others(), key, schema::Goodbye{reason});
}

void Membership::tick(std::uint64_t now_ms) {
  if (holder_ && now_ms >= holder_->void_at_ms) holder_.reset();
  if (idle() || begun() || now_ms < deadline_ms_) return;
  switch (phase_) {
    case Phase::kConnecting: {
      const std::vector<Rank> missing = disconnected();
      const std::string reason =
          names_of(missing) + " did not connect within " + seconds_text(run_.start_timeout_ms) +
          (missing.size() == 1 ? "; is it running and reachable?" : "; are they running and reachable?");
      return end_pending(schema::RunState::kFailed, ErrorKind::kRunFailed, reason);
    }
    case Phase::kClaiming:
      return end_pending(schema::RunState::kFailed, ErrorKind::kRunFailed,
                         name(kGranter) + " did not grant the right to start a run within " +
                             seconds_text(options_.claim_timeout_ms) + "; is it overloaded?");
    case Phase::kProposing: {
      std::vector<Rank> missing;
      for (Rank rank = 0; rank < votes_.size(); ++rank)
        if (!votes_[rank]) missing.push_back(rank);
      return fail_proposal(
          {ErrorKind::kTimeout, name(missing.front()), "prepare",
           names_of(missing) + " did not prepare the run within " + seconds_text(options_.prepare_timeout_ms)});
    }
    case Phase::kPreparing:
      if (own_vote_) return try_to_vote(now_ms);
      return drop();
    default:
      return drop();
  }
}

void Membership::frame(Rank from, const schema::FrameHeader& header, const schema::FrameBody& body,
                       std::uint64_t now_ms) {
  if (from >= options_.names.size() || from == options_.self || header.view != kView) return;
  const std::uint64_t key = header.run;
  if (const auto* claim = std::get_if<schema::Claim>(&body)) on_claim(from, key, *claim, now_ms);
  if (const auto* grant = std::get_if<schema::Grant>(&body); grant && from == kGranter) on_grant(key, *grant, now_ms);
  if (const auto* proposal = std::get_if<schema::Propose>(&body)) on_propose(from, key, *proposal, now_ms);
  if (const auto* vote = std::get_if<schema::Vote>(&body); vote && current_is(key) && phase_ == Phase::kProposing)
    take_vote(from, *vote);
  if (const auto* verdict = std::get_if<schema::Commit>(&body)) on_commit(from, key, *verdict);
  if (const auto* cause = std::get_if<schema::Fail>(&body)) on_fail(from, key, *cause);
  if (std::holds_alternative<schema::Goodbye>(body)) on_goodbye(from, key);
}

// --- as a member ---

void Membership::on_propose(Rank from, std::uint64_t key, const schema::Propose& proposal, std::uint64_t now_ms) {
  const auto refuse = [&](const std::string& message) {
    send({from}, key, schema::Vote{false, ErrorKind::kRefused, message});
  };
  if (current_is(key)) return;
  if (shut_down_) return refuse(own_name() + " is being shut down");
  if (phase_ >= Phase::kProposing) return refuse(taken_message());
  if (options_.self == kGranter) {
    if (!holder_ || holder_->key != key || holder_->rank != from)
      return refuse("the right to start run " + proposal.run_id + " has lapsed; start it again");
    holder_.reset();
  }
  // Whoever proposes holds the grant: our own start would be refused with its id.
  const std::optional<std::uint64_t> own_token = std::exchange(token_, std::nullopt);  // of a PENDING run
  const RunIdentity own = run_;
  if (phase_ == Phase::kClaiming) give_grant_back(own.key);
  reserve(Phase::kPreparing, {key, proposal.run_id, proposal.spec}, from,
          now_ms + options_.prepare_timeout_ms + options_.claim_timeout_ms);
  if (own_token) {
    act(AnswerStart{*own_token, own.id, Error{ErrorKind::kRefused, taken_message()}});
    act(DropRun{own.key});
  }
  act(PrepareRun{run_});
}

// Whether the vote has left or not, the proposer hears a no; whatever it has decided by then is carried out.
void Membership::take_back_vote(schema::Fail cause) {
  if (trouble_) return;
  send({proposer_}, run_.key, schema::Vote{false, cause.kind, cause.message});
  trouble_ = std::move(cause);
}

void Membership::drop() {
  TG_CHECK(phase_ >= Phase::kProposing && !begun());
  become_idle();
  act(DropRun{run_.key});
}

void Membership::on_commit(Rank from, std::uint64_t key, const schema::Commit& commit) {
  if (current_is(key) && begun()) return;
  // A node that refused has nothing to begin with, whatever the proposer says.
  if (!current_is(key) || phase_ != Phase::kVoted || !own_vote_ || !own_vote_->accepted) {
    send({from}, key,
         schema::Fail{ErrorKind::kRunFailed, own_name(), "prepare",
                      own_name() + " had given up waiting for the run to begin"});
    return;
  }
  if (from != proposer_) return;
  begin(commit, "");
  if (trouble_) {
    fail_run(*trouble_);
  } else if (stop_asked_) {
    act(AskStop{run_.key});
  }
}

// --- the run ---

void Membership::begin(const schema::Commit& choice, std::string why) {
  phase_ = Phase::kRunning;
  act(BeginRun{run_, choice, std::move(why)});
}

void Membership::end_run(schema::RunState state, const std::string& reason) {
  become_idle();
  act(EndRun{run_.key, run_.id, state, reason});
}

void Membership::fail_run(const schema::Fail& cause) {
  send(others(), run_.key, cause);
  end_run(schema::RunState::kFailed, cause.message);
}

void Membership::on_fail(Rank from, std::uint64_t key, const schema::Fail& cause) {
  if (holder_ && holder_->key == key && holder_->rank == from) holder_.reset();
  if (!current_is(key)) return;
  if (begun()) return end_run(schema::RunState::kFailed, cause.message);
  if (phase_ == Phase::kProposing) return fail_proposal(cause);
  if (phase_ != Phase::kPreparing && phase_ != Phase::kVoted) return;
  if (from == proposer_) return drop();
  // Its sender has seen the commit; ours is on its way.
  if (!trouble_) trouble_ = cause;
}

void Membership::on_goodbye(Rank from, std::uint64_t key) {
  const std::string reason = name(from) + " was shut down";
  if (holder_ && holder_->rank == from) holder_.reset();
  if (begun()) {
    if (!finished_[from]) end_run(schema::RunState::kFailed, reason);
  } else if (phase_ == Phase::kProposing) {
    fail_proposal({ErrorKind::kUnreachable, name(from), "prepare", reason});
  } else if (current_is(key) && (phase_ == Phase::kPreparing || phase_ == Phase::kVoted)) {
    if (from == proposer_) return drop();
    if (!trouble_) trouble_ = schema::Fail{ErrorKind::kUnreachable, name(from), "prepare", reason};
  }
}

}  // namespace tg::daemon

#include "daemon/membership/membership.h"

#include <algorithm>
#include <utility>

#include "daemon/membership/words.h"
#include "kernels/base/check.h"

namespace tg::daemon {

Membership::Membership(MembershipOptions options)
    : claim_timeout_ms_(options.claim_timeout_ms),
      prepare_timeout_ms_(options.prepare_timeout_ms),
      proposer_timeout_ms_(options.proposer_timeout_ms),
      blamed_timeout_ms_(options.blamed_timeout_ms),
      leaving_timeout_ms_(options.leaving_timeout_ms),
      peers_(std::move(options.names), options.self),
      right_(claim_timeout_ms_),
      votes_(peers_.names()),
      aftermath_(peers_.self()) {
  peers_.set_weight(options.self, options.weight);
}

// --- state ---

std::vector<MembershipAction> Membership::take_actions() {
  for (AftermathAction& action : aftermath_.take_actions())
    std::visit([this](auto& one) { emit(std::move(one)); }, action);
  return std::exchange(actions_, {});
}

bool Membership::idle() const { return current() == nullptr; }

const RunIdentity* Membership::current() const {
  if (pending_) return &pending_->run();
  return phase_ == Phase::kNone ? nullptr : &run_;
}

std::optional<schema::RunState> Membership::state() const {
  if (pending_) return schema::RunState::kPending;
  switch (phase_) {
    case Phase::kNone:
      return std::nullopt;
    case Phase::kProposing:
    case Phase::kPreparing:
    case Phase::kVoted:
      return schema::RunState::kStarting;
    case Phase::kRunning:
      return schema::RunState::kRunning;
    case Phase::kStopping:
      return schema::RunState::kStopping;
    case Phase::kSaving:
      return was_stopping_ ? schema::RunState::kStopping : schema::RunState::kRunning;
  }
  return std::nullopt;
}

// Why a claim or start is refused; "" if the right to propose is free. A pending start does not hold it.
std::string Membership::taken_message() const {
  const bool reserved = phase_ != Phase::kNone;
  const std::optional<ProposalRight::Holder>& holder = right_.holder();
  if (!reserved && !holder) return "";
  const std::string id = reserved ? run_.id : holder->run_id;
  const std::string_view state = to_word(reserved ? *this->state() : schema::RunState::kStarting);
  return "run " + id + " is already " + std::string(state) + ", proposed by " +
         name(reserved ? proposer_ : holder->seat) + "; wait for it, or stop it: tgctl stop " + id;
}

void Membership::send(std::vector<Seat> to, std::uint64_t key, schema::FrameBody body) {
  if (to.empty()) return;
  emit(SendFrame{std::move(to), schema::FrameHeader{key, view_number(key), 0}, std::move(body)});
}

void Membership::reserve(Phase phase, RunIdentity run, Seat proposer, std::uint64_t deadline_ms) {
  TG_CHECK(!pending_ && phase_ == Phase::kNone, run.id);
  phase_ = phase;
  run_ = std::move(run);
  view_ = View::of_all(peers_.size());
  proposer_ = proposer;
  deadline_ms_ = deadline_ms;
  votes_.clear();
  trouble_.reset();
  own_vote_.reset();
  stop_asked_ = false;
  finished_.assign(peers_.size(), false);
  gone_.assign(peers_.size(), false);
  ends_.assign(peers_.size(), std::nullopt);
  blamed_.clear();
}

// --- events ---

void Membership::connection(Seat peer, bool up, std::uint64_t now_ms) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  if (peers_.connected(peer) == up) return;
  peers_.set_connected(peer, up);
  if (up) {
    aftermath_.connected(peer);
    if (pending_ && !pending_->claiming()) try_to_claim(now_ms);
    if (phase_ == Phase::kPreparing && own_vote_ && !stop_asked_) try_to_vote(now_ms);
    return;
  }
  right_.left(peer);
  // While a member prepares no frame but its vote is due: a connection that comes back does no harm.
  if (phase_ == Phase::kPreparing && peer != proposer_) return;
  lost(peer, own_name() + " lost the connection to " + name(peer), now_ms);
}

void Membership::weighs(Seat peer, std::uint16_t weight) {
  TG_CHECK(peers_.is_other(peer) && weight > 0, peer.index(), weight);
  peers_.set_weight(peer, weight);
}

void Membership::cannot_join(Seat peer, const std::string& why, std::uint64_t now_ms) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  if (!pending_ || pending_->claiming() || peers_.connected(peer) || !pending_->hopeless(now_ms)) return;
  end_pending(schema::RunState::kFailed, ErrorKind::kRunFailed, name(peer) + " cannot join: " + why);
}

void Membership::lost(Seat peer, const std::string& message, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(peer), peer.index());
  const schema::Fail cause{ErrorKind::kUnreachable, name(peer), "", message};
  if (pending_ && !peers_.connected(kGranter)) pending_->wait_again();  // claimed again when it is back
  switch (phase_) {
    case Phase::kNone:
      return;
    case Phase::kProposing:
      return fail_proposal(cause);
    case Phase::kPreparing:
    case Phase::kVoted:
      if (peer == proposer_) return drop();
      return take_back_vote(cause);
    case Phase::kRunning:
    case Phase::kStopping:
      gone_[peer] = peer != peers_.self();
      if (!finished_[peer]) fail_run({ErrorKind::kRunFailed, name(peer), "", message});
      return;
    case Phase::kSaving:
      gone_[peer] = peer != peers_.self();
      return settle(now_ms);
  }
}

void Membership::prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms,
                          const engine::EachName& names) {
  if (!current_is(key)) return;
  votes_.know(names);
  if (phase_ == Phase::kProposing) return take_vote(peers_.self(), vote);
  if (phase_ != Phase::kPreparing || own_vote_ || stop_asked_) return;
  own_vote_ = vote;
  // Members connect to each other at their own pace; the proposer's word is only about its own connections.
  deadline_ms_ = now_ms + claim_timeout_ms_;
  try_to_vote(now_ms);
}

void Membership::prepares(Seat seat, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(seat), seat.index());
  const std::vector<Seat> missing = votes_.missing();
  if (phase_ == Phase::kProposing && std::ranges::find(missing, seat) != missing.end())
    deadline_ms_ = now_ms + prepare_timeout_ms_;
  const bool waits = phase_ == Phase::kVoted || (phase_ == Phase::kPreparing && !own_vote_);
  if (waits && !stop_asked_) deadline_ms_ = now_ms + prepare_timeout_ms_ + claim_timeout_ms_;
}

void Membership::try_to_vote(std::uint64_t now_ms) {
  schema::Vote vote = *own_vote_;
  const std::vector<Seat> missing = peers_.disconnected();
  if (vote.accepted && trouble_) {
    vote = {false, trouble_->kind, trouble_->message};
  } else if (vote.accepted && !missing.empty()) {
    if (now_ms < deadline_ms_) return;
    vote = {false, ErrorKind::kUnreachable, own_name() + " is not connected to " + peers_.names_of(missing)};
  }
  phase_ = Phase::kVoted;
  deadline_ms_ = now_ms + prepare_timeout_ms_;
  send({proposer_}, run_.key, vote);
}

Status Membership::stop(const std::string& run_id, std::uint64_t now_ms) {
  if (idle() || current()->id != run_id)
    return Error{ErrorKind::kNotFound, "no run " + run_id + " is in progress on " + own_name()};
  const std::string reason = "run " + run_id + " was stopped at " + own_name() + " before it began";
  switch (phase_) {
    case Phase::kNone:
      end_pending(schema::RunState::kStopped, ErrorKind::kRefused, reason);
      break;
    case Phase::kProposing:
      fail_proposal({ErrorKind::kRefused, own_name(), "prepare", reason});
      break;
    case Phase::kPreparing:
    case Phase::kVoted:
      // The proposer ends the proposal when it reads this; if it has committed by then, the run stops at once.
      if (stop_asked_) break;
      send({proposer_}, run_.key, schema::Vote{false, ErrorKind::kRefused, reason});
      stop_asked_ = true;
      deadline_ms_ = now_ms + claim_timeout_ms_;
      break;
    case Phase::kSaving:
      break;  // it has already ended
    default:
      if (!stop_asked_) emit(AskStop{run_.key});
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

void Membership::peer_finished(Seat peer) {
  TG_CHECK(peers_.knows(peer), peer.index());
  if (begun()) finished_[peer] = true;
}

void Membership::shut_down(std::uint64_t now_ms) {
  if (shut_down_) return;
  shut_down_ = true;
  right_.withdraw();
  const std::string reason = own_name() + " was shut down";
  const std::uint64_t key = idle() ? 0 : current()->key;
  switch (phase_) {
    case Phase::kNone:
      if (pending_) end_pending(schema::RunState::kFailed, ErrorKind::kRefused, reason);
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
      send(peers_.others(), key, schema::Goodbye{reason});  // first: saving takes its time
      end_run(schema::RunState::kFailed, reason);
      return;
    case Phase::kSaving:
      return settle(now_ms);  // and the goodbye follows the verdict
  }
  send(peers_.others(), key, schema::Goodbye{reason});
}

void Membership::tick(std::uint64_t now_ms) {
  right_.tick(now_ms);
  if (pending_)
    if (const std::string reason = pending_->overdue(peers_, claim_timeout_ms_, now_ms); !reason.empty())
      return end_pending(schema::RunState::kFailed, ErrorKind::kRunFailed, reason);
  if (phase_ == Phase::kSaving) return settle(now_ms);
  if (phase_ == Phase::kNone || begun()) return;
  if (now_ms < deadline_ms_) {
    if (phase_ == Phase::kProposing) return propose_again(now_ms);
    if (now_ms >= proposed_ms_ + proposer_timeout_ms_) drop();
    return;
  }
  switch (phase_) {
    case Phase::kProposing: {
      const std::vector<Seat> missing = votes_.missing();
      return fail_proposal(
          {ErrorKind::kTimeout, name(missing.front()), "prepare",
           peers_.names_of(missing) + " got no further in preparing the run for " + seconds_text(prepare_timeout_ms_)});
    }
    case Phase::kPreparing:
      if (own_vote_ && !stop_asked_) return try_to_vote(now_ms);
      return drop();
    default:
      return drop();
  }
}

void Membership::frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                       std::uint64_t now_ms) {
  const std::uint64_t key = header.run;
  if (!peers_.is_other(from) || header.view != view_number(key)) return;
  if (const auto* claim = std::get_if<schema::Claim>(&body)) on_claim(from, key, *claim, now_ms);
  if (const auto* grant = std::get_if<schema::Grant>(&body); grant && from == kGranter) on_grant(key, *grant, now_ms);
  if (const auto* proposal = std::get_if<schema::Propose>(&body)) on_propose(from, key, *proposal, now_ms);
  if (const auto* vote = std::get_if<schema::Vote>(&body); vote && current_is(key) && phase_ == Phase::kProposing)
    take_vote(from, *vote);
  if (const auto* verdict = std::get_if<schema::Commit>(&body)) on_commit(from, key, *verdict);
  if (const auto* cause = std::get_if<schema::Fail>(&body)) on_fail(from, key, *cause);
  if (std::holds_alternative<schema::Goodbye>(body)) on_goodbye(from, key);
  if (const auto* ended = std::get_if<schema::Ended>(&body)) on_ended(from, key, *ended, now_ms);
}

// --- a start at this node ---

void Membership::start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms) {
  const auto refuse = [&](const std::string& message) {
    emit(AnswerStart{token, run.id, Error{ErrorKind::kRefused, message}});
  };
  if (shut_down_) return refuse(own_name() + " is being shut down");
  if (!idle() || right_.holder()) {
    const std::string taken = taken_message();
    return refuse(!taken.empty() ? taken
                                 : "run " + pending_->run().id + " is already PENDING, started at " + own_name() +
                                       "; wait for it, or stop it: tgctl stop " + run_.id);
  }
  pending_.emplace(token, std::move(run), now_ms);
  try_to_claim(now_ms);
}

void Membership::try_to_claim(std::uint64_t now_ms) {
  if (!peers_.disconnected().empty()) return;
  if (peers_.self() != kGranter) {
    pending_->claim(now_ms);
    return send({kGranter}, pending_->run().key, schema::Claim{pending_->run().id});
  }
  const std::string taken = taken_message();
  if (!taken.empty()) return refuse_pending(take_pending(), taken);
  propose(now_ms);
}

void Membership::on_claim(Seat from, std::uint64_t key, const schema::Claim& claim, std::uint64_t now_ms) {
  if (peers_.self() != kGranter) return;
  const bool again = right_.held_by(key, from);
  const std::string taken = shut_down_ ? own_name() + " is being shut down" : again ? "" : taken_message();
  if (taken.empty()) right_.grant({key, claim.run_id, from}, now_ms);
  send({from}, key, schema::Grant{taken.empty(), taken});
}

void Membership::on_grant(std::uint64_t key, const schema::Grant& grant, std::uint64_t now_ms) {
  if (!current_is(key) || !pending_ || !pending_->claiming()) {
    if (grant.granted && !current_is(key)) give_grant_back(key);
    return;
  }
  if (!grant.granted) return refuse_pending(take_pending(), grant.message);
  if (peers_.disconnected().empty()) return propose(now_ms);
  give_grant_back(key);
  pending_->wait_again();
}

void Membership::propose(std::uint64_t now_ms) {
  const PendingStart start = take_pending();
  reserve(Phase::kProposing, start.run(), peers_.self(), now_ms + prepare_timeout_ms_);
  run_.weights = peers_.weights();
  token_ = start.token();
  proposed_ms_ = now_ms;
  send(peers_.others(), run_.key, schema::Propose{run_.id, run_.spec, run_.weights});
  emit(PrepareRun{run_, view_});
}

// Tells the members that this node is still deciding.
void Membership::propose_again(std::uint64_t now_ms) {
  if (now_ms < proposed_ms_ + kProposeAgainMs) return;
  proposed_ms_ = now_ms;
  send(peers_.others(), run_.key, schema::Propose{run_.id, run_.spec, run_.weights});
}

void Membership::give_grant_back(std::uint64_t key) {
  if (peers_.self() == kGranter) return;
  send({kGranter}, key, schema::Fail{ErrorKind::kRefused, own_name(), "claim", "the start was withdrawn"});
}

void Membership::refuse_pending(const PendingStart& start, const std::string& message) {
  emit(AnswerStart{start.token(), start.run().id, Error{ErrorKind::kRefused, message}});
  emit(DropRun{start.run().key});
}

// A run that was never proposed is recorded on the node that was asked.
void Membership::end_pending(schema::RunState state, ErrorKind kind, const std::string& reason) {
  const PendingStart start = take_pending();
  if (start.claiming()) give_grant_back(start.run().key);
  // The end is recorded before the answer.
  emit(EndRun{start.run().key, start.run().id, state, reason, {}});
  emit(AnswerStart{start.token(), start.run().id, Error{kind, reason}});
}

// --- as the proposer ---

void Membership::fail_proposal(const schema::Fail& cause) {
  send(peers_.others(), run_.key, cause);
  emit(AnswerStart{token_, run_.id, Error{cause.kind, cause.message}});
  drop();
}

void Membership::take_vote(Seat from, const schema::Vote& vote) {
  if (const std::optional<schema::Fail> cause = votes_.take(from, vote)) return fail_proposal(*cause);
  if (votes_.missing().empty()) commit();
}

void Membership::commit() {
  Result<Choice> choice = votes_.decide(run_.spec);
  if (!choice) return fail_proposal({choice.error().kind, own_name(), "prepare", choice.error().message});
  votes_.clear();
  send(peers_.others(), run_.key, choice->commit);
  begin(*std::move(choice));
  emit(AnswerStart{token_, run_.id, Status()});
}

// --- as a member ---

void Membership::on_propose(Seat from, std::uint64_t key, const schema::Propose& proposal, std::uint64_t now_ms) {
  const auto refuse = [&](const std::string& message) {
    send({from}, key, schema::Vote{false, ErrorKind::kRefused, message});
  };
  if (current_is(key)) {
    if (from == proposer_) proposed_ms_ = now_ms;
    return;
  }
  if (shut_down_) return refuse(own_name() + " is being shut down");
  if (phase_ != Phase::kNone) return refuse(taken_message());
  if (proposal.weights.size() != peers_.size() || proposal.weights[peers_.self()] != peers_.weights()[peers_.self()])
    return refuse(name(from) + " does not know the weight of " + own_name() + ", " +
                  std::to_string(peers_.weights()[peers_.self()]) + ", yet; start it again");
  if (peers_.self() == kGranter && !right_.spend(key, from))
    return refuse("the right to start run " + proposal.run_id + " has lapsed; start it again");
  // The proposer holds the grant: our own start would be refused with its id.
  const std::optional<PendingStart> own = std::exchange(pending_, std::nullopt);
  if (own && own->claiming()) give_grant_back(own->run().key);
  RunIdentity run{key, proposal.run_id, proposal.spec};
  run.weights = proposal.weights;
  reserve(Phase::kPreparing, std::move(run), from, now_ms + prepare_timeout_ms_ + claim_timeout_ms_);
  proposed_ms_ = now_ms;
  if (own) refuse_pending(*own, taken_message());
  emit(PrepareRun{run_, view_});
}

// The proposer hears a no, whether or not the vote has left; what it has decided by then is carried out.
void Membership::take_back_vote(schema::Fail cause) {
  if (trouble_) return;
  send({proposer_}, run_.key, schema::Vote{false, cause.kind, cause.message});
  trouble_ = std::move(cause);
}

void Membership::drop() {
  TG_CHECK(phase_ != Phase::kNone && !begun());
  votes_.clear();
  phase_ = Phase::kNone;
  emit(DropRun{run_.key});
}

void Membership::on_commit(Seat from, std::uint64_t key, const schema::Commit& commit) {
  if (current_is(key) && (begun() || phase_ == Phase::kSaving)) return;
  // A node that refused has nothing prepared, whatever the proposer says.
  if (!current_is(key) || phase_ != Phase::kVoted || !own_vote_ || !own_vote_->accepted) {
    send({from}, key,
         schema::Fail{ErrorKind::kRunFailed, own_name(), "prepare",
                      own_name() + " had given up waiting for the run to begin"});
    return;
  }
  if (from != proposer_) return;
  begin({commit, "", 0});
  if (trouble_) {
    fail_run(*trouble_);
  } else if (stop_asked_) {
    emit(AskStop{run_.key});
  }
}

// --- the run ---

void Membership::begin(Choice choice) {
  phase_ = Phase::kRunning;
  emit(BeginRun{run_, std::move(choice)});
}

void Membership::end_run(schema::RunState state, const std::string& reason, const std::string& blamed) {
  was_stopping_ = phase_ == Phase::kStopping;
  phase_ = Phase::kSaving;
  blamed_ = blamed;
  emit(SaveRun{run_.key, run_.id, state, reason});
}

void Membership::fail_run(const schema::Fail& cause) {
  send(peers_.others(), run_.key, cause);
  end_run(schema::RunState::kFailed, cause.message, cause.node);
}

void Membership::saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms) {
  if (!current_is(key) || phase_ != Phase::kSaving) return aftermath_.saved(key, own);
  ends_[peers_.self()] = own;
  saved_ms_ = now_ms;
  std::vector<Seat> heard, unheard;
  for (const Seat peer : peers_.others()) (ends_[peer] ? heard : unheard).push_back(peer);
  schema::Ended asking = own;
  asking.asks = true;
  send(std::move(heard), key, own);
  send(std::move(unheard), key, std::move(asking));
  settle(now_ms);
}

void Membership::on_ended(Seat from, std::uint64_t key, const schema::Ended& ended, std::uint64_t now_ms) {
  if (!current_is(key)) return aftermath_.heard(from, key, ended);
  if (!begun() && phase_ != Phase::kSaving) return;  // its begin is on its way, or the reservation falls with a timeout
  ends_[from] = ended;
  ends_[from]->asks = false;
  if (begun()) return end_run(ended.state, ended.reason);
  const std::optional<schema::Ended>& own = ends_[peers_.self()];
  if (ended.asks && own) send({from}, key, *own);
  settle(now_ms);
}

// Gives the verdict as soon as every member that may still speak has spoken.
void Membership::settle(std::uint64_t now_ms) {
  if (!ends_[peers_.self()]) return;
  const bool leaves = shut_down_ && now_ms >= saved_ms_ + leaving_timeout_ms_;
  for (const Seat peer : peers_.others()) {
    if (ends_[peer] || gone_[peer] || leaves) continue;
    if (name(peer) != blamed_ || now_ms < saved_ms_ + blamed_timeout_ms_) return;
  }
  phase_ = Phase::kNone;
  Per<Seat, bool> members(peers_.size(), true);
  const RunEnd end = settled(ends_, peers_.self());
  emit(EndRun{run_.key, run_.id, end.truth.state, end.truth.reason, end});
  aftermath_.add(run_.key, {run_.id, std::move(members), end});
  if (shut_down_) return send(peers_.others(), run_.key, schema::Goodbye{own_name() + " was shut down"});
  for (const Seat peer : peers_.others())
    if (peers_.connected(peer)) aftermath_.connected(peer);
}

void Membership::remember(std::uint64_t key, PastRun run) { aftermath_.add(key, std::move(run)); }

void Membership::on_fail(Seat from, std::uint64_t key, const schema::Fail& cause) {
  right_.give_back(key, from);
  if (!current_is(key)) return;
  if (begun()) return end_run(schema::RunState::kFailed, cause.message, cause.node);
  if (phase_ == Phase::kProposing) return fail_proposal(cause);
  if (phase_ != Phase::kPreparing && phase_ != Phase::kVoted) return;
  if (from == proposer_) return drop();
  // Its sender has seen the commit; ours is on its way.
  if (!trouble_) trouble_ = cause;
}

// A node that leaves says which run it was in, 0 = none. Another run's goodbye does not concern this one; a node that
// was in no run can still not take part in a proposal.
void Membership::on_goodbye(Seat from, std::uint64_t key) {
  const std::string reason = name(from) + " was shut down";
  right_.left(from);
  const bool leaves_proposal = phase_ == Phase::kProposing && key == 0;
  if (!current_is(key) && !leaves_proposal) return;
  if (begun()) {
    if (!finished_[from]) end_run(schema::RunState::kFailed, reason);  // its own word follows when it has saved
  } else if (phase_ == Phase::kProposing) {
    fail_proposal({ErrorKind::kUnreachable, name(from), "prepare", reason});
  } else if (phase_ == Phase::kPreparing || phase_ == Phase::kVoted) {
    if (from == proposer_) return drop();
    if (!trouble_) trouble_ = schema::Fail{ErrorKind::kUnreachable, name(from), "prepare", reason};
  }
}

}  // namespace tg::daemon

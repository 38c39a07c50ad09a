#include "daemon/membership/view_change.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <variant>

#include "daemon/membership/choose_view.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// Only an old vote makes two views of one number possible; the higher continues, by the seats of the run.
auto rank_of(const schema::NextView& view) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> members;
  for (const schema::ViewMember& one : view.members) members.emplace_back(one.seat, one.incarnation);
  return std::pair(view.start, std::move(members));
}

}  // namespace

ViewChange::ViewChange(const Peers& peers, Outbox& out, const Self& self, VoterState vote, bool has_state)
    : peers_(peers),
      out_(out),
      self_(self),
      vote_(std::move(vote)),
      view_(vote_.view, peers.names()),
      previous_view_(view_),
      applied_view_(view_.number()),
      promise_written_(vote_.promised),
      accept_written_(vote_.accepted_in),
      votes_before_(vote_.writes),
      written_(vote_.writes),
      has_state_(has_state),
      peer_states_(Peers::kMax),
      highest_ballot_(vote_.promised) {
  for (const Seat seat : peer_states_.places())
    if (!peers.connected(seat)) peer_states_[seat].status = kUnreachable;
  note_votes();
}

void ViewChange::record() { write_vote({}); }

template <class Condition>
std::vector<Seat> ViewChange::voters(Condition condition) const {
  std::vector<Seat> seats = view_.seats();
  std::erase_if(seats, [&](Seat seat) { return !condition(peer_states_[seat]); });
  return seats;
}

std::vector<Seat> ViewChange::others() const {
  std::vector<Seat> seats = view_.seats();
  std::erase(seats, peers_.self());
  return seats;
}

bool ViewChange::has_reachable_quorum() const {
  return is_quorum(view_, voters([](const PeerState& one) { return one.status != kUnreachable; }));
}

bool ViewChange::is_alone() const {
  return voters([](const PeerState& one) { return one.status == kReachable; }).size() <= (is_voter() ? 1 : 0);
}

std::string ViewChange::reasons() const {
  std::string text;
  for (const Seat seat : view_.seats())
    if (const PeerState& one = peer_states_[seat]; one.suspected && text.find(one.why) == std::string::npos)
      text += (text.empty() ? "" : "; ") + one.why;
  return text;
}

// " (node-b: its vote is damaged)", or ""
std::string ViewChange::whys_of(const std::vector<Seat>& seats) const {
  std::string whys;
  for (const Seat seat : seats)
    whys += (whys.empty() ? " (" : "; ") + peers_.name(seat) + ": " + peer_states_[seat].why;
  return whys.empty() ? "" : whys + ")";
}

// The way out where a quorum needs a lost vote.
std::string ViewChange::lost_votes_text(const std::string& run_id) const {
  const std::vector<Seat> lost = voters([](const PeerState& one) { return one.status == kWithoutVote; });
  return "quorum lost: the vote of " + peers_.names_of(lost) + " is lost, and no node's return helps; `tgctl stop " +
         run_id + "` keeps " + (sealed_ ? "step " + std::to_string(seal_report_.step) : "the state") +
         ", then `tgctl resume " + run_id + "` at " + peers_.own_name() + " continues it" + whys_of(lost);
}

std::string ViewChange::pause_reason(const std::string& run_id) const {
  if (!has_state_ || !in_progress()) return "";
  std::string stop = (hint_.empty() ? "" : "; " + hint_) +
                     (sealed_ ? "; `tgctl stop` keeps step " + std::to_string(seal_report_.step) : "");
  if (!write_problem_.empty()) return write_problem_ + stop;
  if (!is_deciding()) return "";
  const bool asked = phase_ == Phase::kGathering && waited_enough_ && has_reachable_quorum();
  const auto is_lost = [](const PeerState& one) { return one.status == kWithoutVote; };
  const auto is_absent = [&](const PeerState& one) {
    return !is_lost(one) && (asked ? !one.promise : one.status == kUnreachable);
  };
  const std::vector<Seat> absent = voters(is_absent), with_vote = voters(std::not_fn(is_lost));
  const std::vector<Seat> present = voters([&](const PeerState& one) { return !is_lost(one) && !is_absent(one); });
  if (!is_quorum(view_, with_vote)) return lost_votes_text(run_id);
  stop = whys_of(voters(
             [&](const PeerState& one) { return is_lost(one) || (is_absent(one) && one.status == kIneligible); })) +
         stop;
  if (!is_quorum(view_, present)) return quorum_lost_text(view_, present, absent, peers_) + stop;
  if (asked && !absent.empty())
    return "no reachable member can continue the run; resumes when " + peers_.names_of(absent) + " can" + stop;
  if (!overdue_) return "";
  return "the voters have not agreed on the next view; resumes when they have" + stop;
}

// --- reasons ---

void ViewChange::on_connected(Seat peer, std::uint64_t now_ms) {
  set_status(peer, kReachable, now_ms);
  if (view_.number() > View::kFirst && is_installed()) send_decision({peer});
  if (!view_.has(peer) || !is_voter()) return;
  if (!has_state_) send_ineligible({peer});
  if (is_coordinator()) return repeat(now_ms);  // the others report anew which peers they reach
  advance(now_ms);
}

void ViewChange::on_peer_lost(Seat peer, Loss loss, const std::string& why, std::uint64_t now_ms, bool is_needed) {
  set_status(peer, loss == Loss::kReconnected ? kReachable : loss == Loss::kLeaving ? kLeaving : kUnreachable, now_ms);
  if (!peer_states_[peer].suspected) peer_states_[peer].why = why;  // a suspicion's cause is more precise
  peer_states_[peer].disconnected |= sealed_ || !is_installed();
  is_needed ? suspect(peer, why, now_ms, true) : advance(now_ms);
}

// When a quorum becomes reachable again, all waits begin anew.
void ViewChange::set_status(Seat seat, Reachability status, std::uint64_t now_ms) {
  const bool had_no_quorum = !has_reachable_quorum();
  peer_states_[seat].status = status;
  if (had_no_quorum && has_reachable_quorum()) began_ms_ = coordinator_heard_ms_ = quorum_back_ms_ = now_ms;
}

void ViewChange::on_ineligible(const std::string& why, std::uint64_t now_ms) {
  if (ineligible_.empty()) ineligible_ = why;
  suspect(peers_.self(), why, now_ms, true);
}

void ViewChange::leave(const std::string& why, std::uint64_t now_ms) {
  leaving_ = true;
  suspect(peers_.self(), why, now_ms, true);
}

// --- a joiner ---

void ViewChange::admit(ReadyJoiner joiner, std::uint64_t now_ms) {
  if (in_progress() || !has_state_) return;
  joiner_ = std::move(joiner);
  times_.noticed_ms = coordinator_heard_ms_ = now_ms;
  advance(now_ms);
}

void ViewChange::install_snapshot(std::uint64_t step) {
  TG_CHECK(!view_.has_voter(peers_.self(), self_.directory), view_.number());
  has_state_ = sealed_ = true;
  leaving_ = false;  // its leave and its ineligibility belong to its earlier membership
  ineligible_.clear();
  for (PeerState& one : peer_states_) one.disconnected = false;
  seal_report_ = {.has_state = true, .step = step, .can_undo = false};
}

void ViewChange::drop_state() {
  if (!is_voter()) sealed_ = false;
  has_state_ = false;
  phase_ = Phase::kNone;
}

// A reason for a change. is_own: this node has seen it, and tells the others.
void ViewChange::suspect(Seat seat, const std::string& why, std::uint64_t now_ms, bool is_own) {
  if (!view_.has(seat) || !is_voter() || !has_state_) return;
  if (is_own && !is_installed()) return;  // apply_decision() looks again
  PeerState& one = peer_states_[seat];
  if (!has_reason()) {
    times_.noticed_ms = now_ms;
    coordinator_heard_ms_ = std::max(coordinator_heard_ms_, now_ms);
  }
  if (!one.suspected) {
    one.suspected = true;
    one.why = why;
    if (is_own) send(others(), schema::Suspect{view_.number_of(seat), why});
  }
  advance(now_ms);
}

void ViewChange::on_message(Seat from, const schema::Suspect& frame, std::uint64_t now_ms) {
  const std::optional<Seat> seat = view_.member_of(frame.seat);
  if (seat == from && peer_states_[from].status == kReachable) {
    peer_states_[from].status = kIneligible;
    peer_states_[from].why = frame.why;
  }
  if (seat) suspect(*seat, frame.why, now_ms, false);
}

// --- the coordinator ---

bool ViewChange::must_start_ballot(std::uint64_t now_ms) const {
  if (is_coordinator() || leaving_ || !has_state_ || !is_voter() || !is_deciding() || !is_installed()) return false;
  std::uint64_t place = 0;  // among the voters that could coordinate
  for (const Seat seat : view_.by_seniority()) {
    if (is_self(seat)) break;
    if (peer_states_[seat].status == kReachable) ++place;
  }
  const std::optional<Seat> owner = view_.member_of(highest_ballot_.seat);
  const bool other_coordinates =
      highest_ballot_.count > 0 && owner && (is_self(*owner) || peer_states_[*owner].status != kUnreachable);
  if (place == 0 && !other_coordinates) return true;
  const std::uint64_t timeout_ms = std::min(kMaxViewTimeoutMs, kViewTimeoutMs << std::min(highest_ballot_.count, 4U));
  return now_ms >= coordinator_heard_ms_ + timeout_ms * std::max<std::uint64_t>(place, 1);
}

void ViewChange::advance(std::uint64_t now_ms) {
  if (must_start_ballot(now_ms)) return start_ballot(now_ms);
  try_to_propose(now_ms);
}

void ViewChange::start_ballot(std::uint64_t now_ms) {
  phase_ = Phase::kPreparing;
  ballot_ = {highest_ballot_.count + 1, view_.number_of(peers_.self())};
  began_ms_ = sent_ms_ = now_ms;
  waited_enough_ = false;
  for (PeerState& one : peer_states_) {
    one.promise.reset();
    one.accepted = false;
  }
  on_ballot(ballot_, now_ms);
  record_answer(Answer::Kind::kPromise, ballot_, peers_.self(), now_ms);
}

// Without a reachable quorum it sends nothing: this node may be deaf, and the others able to decide without it.
void ViewChange::repeat(std::uint64_t now_ms) {
  sent_ms_ = now_ms;
  if (phase_ == Phase::kGathering && has_reachable_quorum()) send(others(), schema::Prepare{ballot_});
  if (phase_ == Phase::kGathering)
    request_seal({Answer::Kind::kPromise, ballot_, peers_.self(), view_.number()}, now_ms);
  if (phase_ != Phase::kAccepting) return;
  if (has_reachable_quorum()) send(others(), schema::Accept{ballot_, value_});
  // Its own seal report may reach more peers by now.
  if (accept_written_ == ballot_)
    request_seal({Answer::Kind::kAccepted, ballot_, peers_.self(), view_.number()}, now_ms);
}

void ViewChange::tick(std::uint64_t now_ms) {
  const bool behind = !is_installed() || !write_problem_.empty();
  if (behind && !writing_ && now_ms >= failed_ms_ + kRepeatMs) write_vote({});
  if (is_coordinator() && now_ms >= sent_ms_ + kRepeatMs) repeat(now_ms);
  advance(now_ms);
  const std::uint64_t since_ms = std::max({times_.noticed_ms, times_.promised_ms, quorum_back_ms_});
  overdue_ = is_deciding() && now_ms >= since_ms + 2 * self_.peer_timeout_ms;
}

void ViewChange::try_to_propose(std::uint64_t now_ms) {
  if (phase_ != Phase::kGathering) return;
  waited_enough_ = now_ms >= began_ms_ + self_.peer_timeout_ms;
  const std::vector<Seat> promised = voters([](const PeerState& one) { return one.promise.has_value(); });
  std::vector<Seat> awaited = voters([](const PeerState& one) { return !one.promise && one.status == kReachable; });
  if (now_ms >= began_ms_ + kReconnectMs)
    std::erase_if(awaited,
                  [&](Seat seat) { return !reaches(*peer_states_[peers_.self()].promise, peers_.name(seat)); });
  if (!is_quorum(view_, promised) || !(awaited.empty() || waited_enough_)) return;
  Promises promises;
  std::string causes;
  for (const Seat seat : promised) {
    promises.emplace_back(seat, *peer_states_[seat].promise);
    const std::string& one = peer_states_[seat].promise->unfit;
    if (!one.empty() && causes.find(one) == std::string::npos) causes += (causes.empty() ? "" : "; ") + one;
  }
  if (!all_linked(view_, promises) && now_ms < began_ms_ + kReconnectMs) return;
  std::optional<schema::NextView> next = choose_view(view_, promises, reasons(), joiner_);
  if (!next) {
    waited_enough_ = true;
    const bool none = std::ranges::none_of(
        promises, [](const auto& one) { return one.second.has_state && one.second.unfit.empty(); });
    const auto lost = voters([](const PeerState& one) { return one.status == kWithoutVote && !one.promise; });
    if (promised.size() + lost.size() == view_.size() && none) unrecoverable_ = causes;
    return;
  }
  value_ = *std::move(next);
  phase_ = Phase::kAccepting;
  repeat(now_ms);
  vote_.accepted = value_;
  record_answer(Answer::Kind::kAccepted, ballot_, peers_.self(), now_ms);
}

// --- as the coordinator ---

void ViewChange::note_votes() {
  for (const schema::ViewMember& member : view_.members()) {
    PeerState& one = peer_states_[*view_.member_of(member.seat)];
    one.told_vote = member.vote;
    one.told_incarnation = member.incarnation;
  }
}

bool ViewChange::is_old(Seat from, const auto& answer, std::uint64_t now_ms) {
  PeerState& one = peer_states_[from];
  if (answer.incarnation != one.told_incarnation && answer.votes_before < one.told_vote) {
    one.status = Reachability::kWithoutVote;
    one.why = "the vote of " + peers_.name(from) + " is old: " + std::to_string(answer.votes_before) +
              ", but it has told " + std::to_string(one.told_vote) + "; was its state-dir restored or copied?";
    suspect(from, std::string(one.why), now_ms, true);
    return true;
  }
  if (answer.vote < one.told_vote) return false;
  one.told_vote = answer.vote;
  one.told_incarnation = answer.incarnation;
  return false;
}

void ViewChange::on_message(Seat from, const schema::Promise& promise, std::uint64_t now_ms) {
  if (!view_.has_voter(from, promise.directory)) {
    peer_states_[from].status = kWithoutVote;
    peer_states_[from].why = promise.unfit;
    return advance(now_ms);
  }
  if (is_old(from, promise, now_ms)) return;
  if (phase_ != Phase::kGathering || promise.ballot != ballot_) return;
  if (promise.accepted_in.count > 0 && !is_next(promise.accepted)) return;
  peer_states_[from].promise = promise;
  try_to_propose(now_ms);
}

void ViewChange::on_message(Seat from, const schema::Accepted& accepted, std::uint64_t now_ms) {
  if (phase_ != Phase::kAccepting || accepted.ballot != ballot_ || !view_.has_voter(from, accepted.directory)) return;
  if (is_old(from, accepted, now_ms)) return;
  peer_states_[from].accepted = true;
  count_accepted(now_ms);
}

void ViewChange::count_accepted(std::uint64_t now_ms) {
  if (is_quorum(view_, voters([](const PeerState& one) { return one.accepted; })))
    on_decided(schema::NextView(value_), now_ms);
}

void ViewChange::on_message(Seat, const schema::Nack& nack, std::uint64_t now_ms) {
  if (view_.member_of(nack.ballot.seat)) on_ballot(nack.ballot, now_ms);
}

// --- as a voter ---

// A ballot was seen: a lower one of this node is over.
void ViewChange::on_ballot(const schema::Ballot& ballot, std::uint64_t now_ms) {
  if (ballot < highest_ballot_) return;
  highest_ballot_ = ballot;
  coordinator_heard_ms_ = now_ms;
  if (is_coordinator() && ballot_ < highest_ballot_) phase_ = Phase::kNone;
}

void ViewChange::on_message(Seat from, const schema::Prepare& prepare, std::uint64_t now_ms) {
  if (!is_from(from, prepare.ballot)) return;
  if (prepare.ballot < vote_.promised) return send({from}, schema::Nack{vote_.promised});
  on_ballot(prepare.ballot, now_ms);
  record_answer(Answer::Kind::kPromise, prepare.ballot, from, now_ms);
}

void ViewChange::on_message(Seat from, const schema::Accept& accept, std::uint64_t now_ms) {
  if (!is_from(from, accept.ballot) || !is_next(accept.view)) return;
  if (accept.ballot < vote_.promised) return send({from}, schema::Nack{vote_.promised});
  on_ballot(accept.ballot, now_ms);
  vote_.accepted = accept.view;
  record_answer(Answer::Kind::kAccepted, accept.ballot, from, now_ms);
}

// The first of its members that neither a peer line of this node nor its present view names; "" if there is none.
std::string ViewChange::unknown_in(const schema::NextView& next) const {
  for (const schema::ViewMember& member : next.members) {
    const std::string& node = next.names[member.seat];
    const bool is_member = std::ranges::any_of(view_.seats(), [&](Seat seat) { return peers_.name(seat) == node; });
    if (!is_member && !peers_.seat_of(node)) return node;
  }
  return "";
}

bool ViewChange::is_next(const schema::NextView& next) const {
  const std::vector<std::string>& names = view_.names();
  return next.number == view_.number() + 1 && !next.members.empty() && unknown_in(next).empty() &&
         std::ranges::equal(names, std::span(next.names).first(std::min(names.size(), next.names.size())));
}

bool ViewChange::is_written(const Answer& answer) const {
  return answer.ballot == (answer.kind == Answer::Kind::kPromise ? promise_written_ : accept_written_);
}

// A durable answer is sent at once, repeated if need be; one that is being written is sent when it is durable.
void ViewChange::record_answer(Answer::Kind kind, const schema::Ballot& ballot, Seat to, std::uint64_t now_ms) {
  const Answer answer{kind, ballot, to, view_.number()};
  vote_.promised = ballot;
  if (kind == Answer::Kind::kAccepted) vote_.accepted_in = ballot;
  if (is_written(answer)) return request_seal(answer, now_ms);
  if (writing_ != answer && next_write_ != answer) write_vote(answer);
}

void ViewChange::write_vote(Answer answer) {
  answer.view = view_.number();
  if (writing_) {
    next_write_ = answer;
    return;
  }
  ++vote_.writes;
  writing_ = answer;
  out_.emit(WriteVote{vote_.run_key, vote_});
}

void ViewChange::on_vote_written(const std::string& problem, std::uint64_t now_ms) {
  TG_CHECK(writing_, vote_.run_key);
  const Answer answer = *std::exchange(writing_, std::nullopt);
  const std::optional<Answer> next = std::exchange(next_write_, std::nullopt);
  if (!problem.empty()) {
    failed_ms_ = coordinator_heard_ms_ = now_ms;
    phase_ = Phase::kNone;
    if (answer.kind == Answer::Kind::kNothing && is_installed()) return;
    return on_disk_problem(peers_.own_name() + " cannot write its vote: " + problem, now_ms);
  }
  write_problem_.clear();
  written_ = vote_.writes;
  if (answer.view == view_.number()) {
    if (!is_installed()) apply_decision(now_ms);
    promise_written_ = std::max(promise_written_, answer.ballot);
    if (answer.kind == Answer::Kind::kAccepted) accept_written_ = std::max(accept_written_, answer.ballot);
  }
  if (next) return write_vote(*next);
  if (answer.view == view_.number() && answer.kind != Answer::Kind::kNothing) request_seal(answer, now_ms);
}

void ViewChange::on_disk_problem(const std::string& why, std::uint64_t now_ms) {
  if (why == write_problem_ && writing_) return;  // it is told already
  write_problem_ = why;
  if (!is_installed() && view_.has(peers_.self()))  // the others have installed a view that has this node
    send(others(), schema::Suspect{view_.number_of(peers_.self()), why});
  suspect(peers_.self(), why, now_ms, true);
}

void ViewChange::request_seal(const Answer& answer, std::uint64_t now_ms) {
  if (!has_state_) return send_answer(answer, {}, now_ms);
  pending_seals_.push_back(answer);
  out_.emit(Seal{vote_.run_key});
}

void ViewChange::on_sealed(const SealReport& report, std::uint64_t now_ms) {
  TG_CHECK(!pending_seals_.empty(), vote_.run_key);
  const Answer answer = pending_seals_.front();
  pending_seals_.pop_front();
  if (answer.view == view_.number()) send_answer(answer, report, now_ms);
}

void ViewChange::send_answer(const Answer& answer, const SealReport& report, std::uint64_t now_ms) {
  if (!sealed_) {
    times_.promised_ms = now_ms;
    for (const Seat seat : peer_states_.places())
      if (!view_.has(seat))
        peer_states_[seat].disconnected = false;  // a joiner's disconnect before this change does not count
  }
  sealed_ = true;
  seal_report_ = report;
  // These are reachable again: one that is lost from now on is lost in the next view, too.
  for (const Seat seat : report.reachable)
    if (peer_states_[seat].status == kUnreachable) peer_states_[seat].status = kReachable;
  if (answer.kind == Answer::Kind::kAccepted) {
    if (answer.ballot != vote_.accepted_in) return;
    if (!is_self(answer.to))
      return send({answer.to},
                  schema::Accepted{answer.ballot, self_.directory, self_.incarnation, written_, votes_before_});
    if (phase_ != Phase::kAccepting || ballot_ != answer.ballot) return;
    peer_states_[answer.to].accepted = true;
    return count_accepted(now_ms);
  }
  if (answer.ballot != vote_.promised) return;
  schema::Promise promise{answer.ballot,
                          self_.directory,
                          self_.incarnation,
                          has_state_ && report.has_state,
                          report.step,
                          report.unfit.empty() ? ineligible_ : report.unfit,
                          leaving_ || report.leaving};
  for (const Seat seat : report.reachable) promise.reachable.push_back(peers_.name(seat));
  promise.accepted_in = vote_.accepted_in;
  promise.accepted = vote_.accepted;
  promise.vote = written_;
  promise.votes_before = votes_before_;
  if (!is_self(answer.to)) return send({answer.to}, std::move(promise));
  if (ballot_ != answer.ballot) return;
  peer_states_[answer.to].promise = std::move(promise);
  if (phase_ == Phase::kPreparing) {
    phase_ = Phase::kGathering;
    if (has_reachable_quorum()) send(others(), schema::Prepare{ballot_});
  }
  try_to_propose(now_ms);
}

// --- the decision ---

void ViewChange::on_decided(const schema::NextView& next, std::uint64_t now_ms) {
  if (next.number > view_.number() && !next.members.empty() && knows_members(next)) record_decision(next, now_ms);
}

bool ViewChange::knows_members(const schema::NextView& next) {
  const std::string node = unknown_in(next);
  if (!node.empty())
    note_hint("view " + std::to_string(next.number) + " has " + node + ", and no peer line of " + peers_.own_name() +
              " names it; add that line");
  return node.empty();
}

void ViewChange::record_decision(const schema::NextView& next, std::uint64_t now_ms) {
  if (is_installed()) {
    previous_view_ = view_;
    decision_times_ = times_;
    decision_times_.decided_ms = now_ms;
    const std::uint64_t step = seal_report_.step;
    can_install_ = sealed_ && (next.start == step || (seal_report_.can_undo && step > 0 && next.start == step - 1));
  }
  vote_ = {vote_.run_key, next, {}, {}, {}, vote_.writes};
  view_ = View(next, peers_.names());
  note_votes();
  hint_.clear();
  write_problem_.clear();
  promise_written_ = accept_written_ = highest_ballot_ = {};
  coordinator_heard_ms_ = now_ms;
  sealed_ = false;
  phase_ = Phase::kNone;
  joiner_.reset();
  times_ = {};
  unrecoverable_.clear();
  for (PeerState& one : peer_states_) one.suspected = false;
  write_vote({});
}

// The decision is durable.
void ViewChange::apply_decision(std::uint64_t now_ms) {
  std::vector<Seat> to = peers_.others();
  std::erase_if(to, [this](Seat seat) { return !view_.has(seat) && !previous_view_.has(seat); });
  send_decision(std::move(to));
  const bool follows = view_.number() == applied_view_ + 1;
  applied_view_ = view_.number();
  if (!has_state_) return is_voter() ? send_ineligible(others()) : void();
  const std::optional<Rank> rank = view_.rank(peers_.self());
  // An earlier process at this seat may have promised.
  const bool stays =
      follows && can_install_ && is_voter() && view_.members()[rank->index()].incarnation == self_.incarnation;
  outcome_ = Outcome{stays, vote_.view};
  if (!stays) {
    if (follows && rank && is_voter() && !can_install_)
      outcome_->next.why = "it cannot go on from step " + std::to_string(vote_.view.start) +
                           ", as was decided; do all nodes run the same build?";
    out_.emit(LeaveView{vote_.run_key, outcome_->next});
    return drop_state();
  }
  out_.emit(InstallView{vote_.run_key, vote_.view, decision_times_});
  for (const Seat seat : view_.seats()) {
    PeerState& one = peer_states_[seat];
    // A joiner's reports belong to its earlier membership.
    if (!previous_view_.has(seat) && one.status != kUnreachable) one.status = kReachable;
    if (!std::exchange(one.disconnected, false) && one.status == kReachable) continue;
    suspect(seat, std::string(one.why), now_ms, true);
    if (one.status != kUnreachable) one.status = kReachable;  // else its next promise says so
  }
  if (!ineligible_.empty()) suspect(peers_.self(), ineligible_, now_ms, true);
  advance(now_ms);
}

void ViewChange::on_stale_view(Seat from, std::uint32_t view, std::uint64_t now_ms) {
  if (view == 0 || view >= view_.number() || !is_installed()) return;
  std::optional<std::uint64_t>& answered_ms = peer_states_[from].answered_ms;
  if (answered_ms && now_ms < *answered_ms + kAnswerMs) return;
  answered_ms = now_ms;
  send_decision({from});
}

void ViewChange::on_hint(Seat from, const std::string& what, std::uint64_t now_ms) {
  if (!is_installed() || (hinted_ms_ > 0 && now_ms < hinted_ms_ + kRepeatMs)) return;
  hinted_ms_ = now_ms;
  const std::string hint = peers_.name(from) + " " + what + ", but is in no view that " + peers_.own_name() + " knows";
  note_hint(hint, "; asking " + peers_.names_of(others()));
  send_decision(others());
}

void ViewChange::note_hint(const std::string& what, const std::string& next) {
  if (what != std::exchange(hint_, what)) out_.emit(NoteJoin{vote_.run_key, what + next, true});
}

void ViewChange::on_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                          std::uint64_t now_ms) {
  if (const auto* decide = std::get_if<schema::Decide>(&body)) {
    if (decide->view.number != header.view + 1 || decide->view.members.empty()) return;
    if (peer_states_[from].status == kUnreachable) set_status(from, kReachable, now_ms);
    on_stale_view(from, decide->view.number, now_ms);
    const bool installed = view_.number() > View::kFirst && is_installed();
    if (!installed || decide->view.number != view_.number()) return on_decided(decide->view, now_ms);
    if (rank_of(decide->view) < rank_of(vote_.view)) return send_decision({from});
    if (rank_of(decide->view) == rank_of(vote_.view) || !knows_members(decide->view)) return;
    applied_view_ = 0;  // this node's is given up
    return record_decision(decide->view, now_ms);
  }
  on_stale_view(from, header.view, now_ms);
  if (header.view != view_.number() || !view_.has(from) || !is_voter()) return;
  if (peer_states_[from].status == kUnreachable) set_status(from, kReachable, now_ms);
  std::visit([&](const auto& one) { on_message(from, one, now_ms); }, body);
}

}  // namespace tg::daemon

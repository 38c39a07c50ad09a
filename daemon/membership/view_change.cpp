#include "daemon/membership/view_change.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "daemon/membership/choose_view.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

Seat owner(const schema::Ballot& ballot) { return Seat(ballot.seat); }

}  // namespace

ViewChange::ViewChange(const Peers& peers, Outbox& out, const Self& self, VoterState vote, bool has_state)
    : peers_(peers),
      out_(out),
      self_(self),
      vote_(std::move(vote)),
      view_(vote_.view),
      before_(view_),
      acted_on_(view_.number()),
      promise_written_(vote_.promised),
      accept_written_(vote_.accepted_in),
      has_state_(has_state),
      voices_(peers.size()),
      heard_(vote_.promised) {
  for (const Seat seat : voices_.places())
    if (!peers.connected(seat)) voices_[seat].presence = Presence::kAway;
}

void ViewChange::record() { write({}); }

template <class Condition>
std::vector<Seat> ViewChange::voters(Condition condition) const {
  std::vector<Seat> seats = view_.seats();
  std::erase_if(seats, [&](Seat seat) { return !condition(voices_[seat]); });
  return seats;
}

std::vector<Seat> ViewChange::others() const {
  std::vector<Seat> seats = view_.seats();
  std::erase(seats, peers_.self());
  return seats;
}

bool ViewChange::can_decide() const {
  return is_quorum(view_, voters([](const Voice& one) { return one.presence != Presence::kAway; }));
}

bool ViewChange::alone() const {
  return voters([](const Voice& one) { return one.presence == Presence::kHere; }).size() <= (votes() ? 1 : 0);
}

std::string ViewChange::why() const {
  std::string text;
  for (const Seat seat : view_.seats())
    if (const Voice& one = voices_[seat]; one.suspected && text.find(one.why) == std::string::npos)
      text += (text.empty() ? "" : "; ") + one.why;
  return text;
}

std::string ViewChange::paused() const {
  const bool waits = acted_on_ != view_.number();
  if (!has_state_ || !(in_change() || waits)) return "";
  const std::string stop = frozen_ ? "; `tgctl stop` keeps step " + std::to_string(standing_.step) : "";
  if (unwritten_) return peers_.own_name() + " cannot write its vote; make room on its disk" + stop;
  if (!in_change()) return "";
  const bool asked = phase_ == Phase::kGathering && late_ && can_decide();
  const std::vector<Seat> away =
      voters([&](const Voice& one) { return asked ? !one.promise : one.presence == Presence::kAway; });
  const std::vector<Seat> here =
      voters([&](const Voice& one) { return asked ? one.promise.has_value() : one.presence != Presence::kAway; });
  if (!is_quorum(view_, here)) return words_of_absence(view_, away, peers_) + stop;
  if (asked && !away.empty())
    return "none of the members that are there can go on; the run goes on as soon as " + peers_.names_of(away) +
           " can" + stop;
  if (!overdue_) return "";
  return "its members have not agreed on who goes on; the run goes on as soon as they have" + stop;
}

// --- reasons ---

void ViewChange::connected(Seat peer, std::uint64_t now_ms) {
  is_now(peer, Presence::kHere, now_ms);
  if (view_.number() > View::kFirst && acted_on_ == view_.number()) send_decision({peer});
  if (!view_.has(peer) || !votes()) return;
  if (!has_state_) say_that_it_cannot({peer});
  if (leads()) return repeat(now_ms);  // all are asked anew whom they hear
  proceed(now_ms);
}

void ViewChange::lost(Seat peer, Loss loss, const std::string& why, std::uint64_t now_ms, bool is_needed) {
  is_now(peer,
         loss == Loss::kBack     ? Presence::kHere
         : loss == Loss::kLeaves ? Presence::kLeaves
                                 : Presence::kAway,
         now_ms);
  if (!voices_[peer].suspected) voices_[peer].why = why;  // else more is known of it
  voices_[peer].broke |= frozen_ || acted_on_ != view_.number();
  is_needed ? suspect(peer, why, now_ms, true) : proceed(now_ms);
}

// Where a quorum comes back all waits begin anew.
void ViewChange::is_now(Seat seat, Presence presence, std::uint64_t now_ms) {
  const bool in_vain = !can_decide();
  voices_[seat].presence = presence;
  if (in_vain && can_decide()) began_ms_ = heard_ms_ = quorum_ms_ = now_ms;
}

void ViewChange::unfit(const std::string& why, std::uint64_t now_ms) {
  if (unfit_.empty()) unfit_ = why;
  suspect(peers_.self(), why, now_ms, true);
}

void ViewChange::leave(const std::string& why, std::uint64_t now_ms) {
  leaves_ = true;
  suspect(peers_.self(), why, now_ms, true);
}

// --- a newcomer ---

void ViewChange::admit(Newcomer newcomer, std::uint64_t now_ms) {
  if (in_change() || acted_on_ != view_.number() || !has_state_) return;
  newcomer_ = std::move(newcomer);
  times_.noticed_ms = heard_ms_ = now_ms;
  proceed(now_ms);
}

void ViewChange::be_fed(std::uint64_t step) {
  TG_CHECK(!view_.has_voter(peers_.self(), self_.directory), view_.number());
  has_state_ = frozen_ = true;
  leaves_ = false;  // what it was told, or could not do, was about the time before
  unfit_.clear();
  for (Voice& one : voices_) one.broke = false;
  standing_ = {.has_state = true, .step = step, .goes_back = false};
}

void ViewChange::drop_state() {
  if (!votes()) frozen_ = false;
  has_state_ = false;
  phase_ = Phase::kNone;
}

// A reason, which this node tells if it is the one that has seen it.
void ViewChange::suspect(Seat seat, const std::string& why, std::uint64_t now_ms, bool tell) {
  if (!view_.has(seat) || !votes() || !has_state_) return;
  if (tell && acted_on_ != view_.number()) return;  // act() looks who is lost by then
  Voice& one = voices_[seat];
  if (!noticed()) {
    times_.noticed_ms = now_ms;
    heard_ms_ = std::max(heard_ms_, now_ms);
  }
  if (!one.suspected) {
    one.suspected = true;
    one.why = why;
    if (tell) send(others(), schema::Suspect{static_cast<std::uint32_t>(seat.index()), why});
  }
  proceed(now_ms);
}

void ViewChange::on(Seat from, const schema::Suspect& frame, std::uint64_t now_ms) {
  const Seat seat(frame.seat);
  if (seat == from && voices_[from].presence == Presence::kHere) {
    voices_[from].presence = Presence::kCannot;
    voices_[from].why = frame.why;
  }
  if (view_.has(seat)) suspect(seat, frame.why, now_ms, false);
}

// --- who leads ---

bool ViewChange::due(std::uint64_t now_ms) const {
  if (leads() || leaves_ || !has_state_ || !votes() || !in_change() || acted_on_ != view_.number()) return false;
  std::uint64_t place = 0;  // among those who could lead
  for (const Seat seat : view_.by_seniority()) {
    if (is_self(seat)) break;
    if (voices_[seat].presence == Presence::kHere) ++place;
  }
  const bool others_turn =
      heard_.count > 0 && (is_self(owner(heard_)) || voices_[owner(heard_)].presence != Presence::kAway);
  if (place == 0 && !others_turn) return true;
  const std::uint64_t patience_ms = std::min(kMaxViewTimeoutMs, kViewTimeoutMs << std::min(heard_.count, 4U));
  return now_ms >= heard_ms_ + patience_ms * std::max<std::uint64_t>(place, 1);
}

void ViewChange::proceed(std::uint64_t now_ms) {
  if (due(now_ms)) return lead(now_ms);
  try_to_choose(now_ms);
}

void ViewChange::lead(std::uint64_t now_ms) {
  phase_ = Phase::kPreparing;
  ballot_ = {heard_.count + 1, static_cast<std::uint32_t>(peers_.self().index())};
  began_ms_ = sent_ms_ = now_ms;
  late_ = false;
  for (Voice& one : voices_) {
    one.promise.reset();
    one.accepted = false;
  }
  heard(ballot_, now_ms);
  answer(After::What::kPromise, ballot_, peers_.self(), now_ms);
}

// Who hears too few to decide anything keeps still: he may be deaf, and the others able to decide without him.
void ViewChange::repeat(std::uint64_t now_ms) {
  sent_ms_ = now_ms;
  if (phase_ == Phase::kGathering && can_decide()) send(others(), schema::Prepare{ballot_});
  if (phase_ == Phase::kGathering) ask({After::What::kPromise, ballot_, peers_.self(), view_.number()}, now_ms);
  if (phase_ != Phase::kAccepting) return;
  if (can_decide()) send(others(), schema::Accept{ballot_, value_});
  // Whom does it hear by now?
  if (accept_written_ == ballot_) ask({After::What::kAccepted, ballot_, peers_.self(), view_.number()}, now_ms);
}

void ViewChange::tick(std::uint64_t now_ms) {
  const bool behind = acted_on_ != view_.number() || unwritten_;
  if (behind && writes_.empty() && now_ms >= failed_ms_ + kAgainMs) write({});
  if (leads() && now_ms >= sent_ms_ + kAgainMs) repeat(now_ms);
  proceed(now_ms);
  const std::uint64_t since_ms = std::max({times_.noticed_ms, times_.promised_ms, quorum_ms_});
  overdue_ = in_change() && now_ms >= since_ms + 2 * self_.peer_timeout_ms;
}

void ViewChange::try_to_choose(std::uint64_t now_ms) {
  if (phase_ != Phase::kGathering) return;
  late_ = now_ms >= began_ms_ + self_.peer_timeout_ms;
  const std::vector<Seat> promised = voters([](const Voice& one) { return one.promise.has_value(); });
  std::vector<Seat> awaited = voters([](const Voice& one) { return !one.promise && one.presence == Presence::kHere; });
  if (now_ms >= began_ms_ + kLinksMs)
    std::erase_if(awaited, [&](Seat seat) { return !hears(*voices_[peers_.self()].promise, seat); });
  if (!is_quorum(view_, promised) || !(awaited.empty() || late_)) return;
  Promises promises;
  std::string unfit;
  for (const Seat seat : promised) {
    promises.emplace_back(seat, *voices_[seat].promise);
    const std::string& one = voices_[seat].promise->unfit;
    if (!one.empty() && unfit.find(one) == std::string::npos) unfit += (unfit.empty() ? "" : "; ") + one;
  }
  if (!all_linked(promises) && now_ms < began_ms_ + kLinksMs) return;
  std::optional<schema::NextView> next = choose_view(view_, promises, why(), newcomer_);
  if (!next) {
    late_ = true;
    const bool none = std::ranges::none_of(
        promises, [](const auto& one) { return one.second.has_state && one.second.unfit.empty(); });
    if (promised.size() == view_.size() && none) hopeless_ = unfit;
    return;
  }
  value_ = *std::move(next);
  phase_ = Phase::kAccepting;
  repeat(now_ms);
  vote_.accepted = value_;
  answer(After::What::kAccepted, ballot_, peers_.self(), now_ms);
}

// --- as the leader ---

void ViewChange::on(Seat from, const schema::Promise& promise, std::uint64_t now_ms) {
  if (phase_ != Phase::kGathering || promise.ballot != ballot_ || !view_.has_voter(from, promise.directory)) return;
  if (promise.accepted_in.count > 0 && !is_next(promise.accepted)) return;
  voices_[from].promise = promise;
  try_to_choose(now_ms);
}

void ViewChange::on(Seat from, const schema::Accepted& accepted, std::uint64_t now_ms) {
  if (phase_ != Phase::kAccepting || accepted.ballot != ballot_ || !view_.has_voter(from, accepted.directory)) return;
  voices_[from].accepted = true;
  count(now_ms);
}

void ViewChange::count(std::uint64_t now_ms) {
  if (is_quorum(view_, voters([](const Voice& one) { return one.accepted; }))) learn(schema::NextView(value_), now_ms);
}

void ViewChange::on(Seat, const schema::Outvoted& outvoted, std::uint64_t now_ms) {
  if (view_.has(owner(outvoted.ballot))) heard(outvoted.ballot, now_ms);
}

// --- as a voter ---

// Of this ballot's leader, or of this ballot: a lower one of ours is over.
void ViewChange::heard(const schema::Ballot& ballot, std::uint64_t now_ms) {
  if (ballot < heard_) return;
  heard_ = ballot;
  heard_ms_ = now_ms;
  if (leads() && ballot_ < heard_) phase_ = Phase::kNone;
}

void ViewChange::on(Seat from, const schema::Prepare& prepare, std::uint64_t now_ms) {
  if (owner(prepare.ballot) != from) return;
  if (prepare.ballot < vote_.promised) return send({from}, schema::Outvoted{vote_.promised});
  heard(prepare.ballot, now_ms);
  answer(After::What::kPromise, prepare.ballot, from, now_ms);
}

void ViewChange::on(Seat from, const schema::Accept& accept, std::uint64_t now_ms) {
  if (owner(accept.ballot) != from || !is_next(accept.view)) return;
  if (accept.ballot < vote_.promised) return send({from}, schema::Outvoted{vote_.promised});
  heard(accept.ballot, now_ms);
  vote_.accepted = accept.view;
  answer(After::What::kAccepted, accept.ballot, from, now_ms);
}

bool ViewChange::is_next(const schema::NextView& next) const {
  return next.number == view_.number() + 1 && !next.members.empty() && peers_.knows(Seat(next.members.back().seat));
}

bool ViewChange::is_written(const After& after) const {
  return after.ballot == (after.what == After::What::kPromise ? promise_written_ : accept_written_);
}

// What is on disk is told, again if it was told before; what is on its way there is told then.
void ViewChange::answer(After::What what, const schema::Ballot& ballot, Seat to, std::uint64_t now_ms) {
  const After after{what, ballot, to, view_.number()};
  vote_.promised = ballot;
  if (what == After::What::kAccepted) vote_.accepted_in = ballot;
  if (is_written(after)) return ask(after, now_ms);
  const bool on_its_way = std::ranges::any_of(
      writes_, [&](const After& one) { return one.what == what && one.ballot == ballot && one.view == after.view; });
  if (!on_its_way) write(after);
}

void ViewChange::write(After after) {
  after.view = view_.number();
  writes_.push_back(after);
  out_.emit(WriteVote{vote_.key, vote_});
}

void ViewChange::voted(bool ok, std::uint64_t now_ms) {
  TG_CHECK(!writes_.empty(), vote_.key);
  const After after = writes_.front();
  writes_.pop_front();
  if (!ok) {
    failed_ms_ = heard_ms_ = now_ms;
    phase_ = Phase::kNone;
    if (after.what == After::What::kNothing && acted_on_ == view_.number()) return;
    unwritten_ = true;
    const std::string why = peers_.own_name() + " cannot write its vote; make room on its disk";
    if (acted_on_ != view_.number() && view_.has(peers_.self()))  // the others have gone on, with this node
      send(others(), schema::Suspect{static_cast<std::uint32_t>(peers_.self().index()), why});
    return suspect(peers_.self(), why, now_ms, true);
  }
  unwritten_ = false;
  if (after.view != view_.number()) return;
  if (acted_on_ != view_.number()) act(now_ms);
  if (after.what == After::What::kNothing) return;
  promise_written_ = std::max(promise_written_, after.ballot);
  if (after.what == After::What::kAccepted) accept_written_ = std::max(accept_written_, after.ballot);
  ask(after, now_ms);
}

void ViewChange::ask(const After& after, std::uint64_t now_ms) {
  if (!has_state_) return tell(after, {}, now_ms);
  asks_.push_back(after);
  out_.emit(Freeze{vote_.key});
}

void ViewChange::stands(const Standing& standing, std::uint64_t now_ms) {
  TG_CHECK(!asks_.empty(), vote_.key);
  const After after = asks_.front();
  asks_.pop_front();
  if (after.view == view_.number()) tell(after, standing, now_ms);
}

void ViewChange::tell(const After& after, const Standing& standing, std::uint64_t now_ms) {
  if (!frozen_) {
    times_.promised_ms = now_ms;
    for (const Seat seat : voices_.places())
      if (!view_.has(seat)) voices_[seat].broke = false;  // before this change; it may come in with it
  }
  frozen_ = true;
  standing_ = standing;
  // A silence that has ended: who is lost from now on is lost in the next view, too.
  for (const Seat seat : standing.hears)
    if (voices_[seat].presence == Presence::kAway) voices_[seat].presence = Presence::kHere;
  if (after.what == After::What::kAccepted) {
    if (after.ballot != vote_.accepted_in) return;
    if (!is_self(after.to)) return send({after.to}, schema::Accepted{after.ballot, self_.directory});
    if (phase_ != Phase::kAccepting || ballot_ != after.ballot) return;
    voices_[after.to].accepted = true;
    return count(now_ms);
  }
  if (after.ballot != vote_.promised) return;
  schema::Promise promise{after.ballot,
                          self_.directory,
                          self_.incarnation,
                          has_state_ && standing.has_state,
                          standing.step,
                          standing.unfit.empty() ? unfit_ : standing.unfit,
                          leaves_ || standing.leaves};
  for (const Seat seat : standing.hears) promise.hears.push_back(static_cast<std::uint32_t>(seat.index()));
  promise.accepted_in = vote_.accepted_in;
  promise.accepted = vote_.accepted;
  if (!is_self(after.to)) return send({after.to}, std::move(promise));
  if (ballot_ != after.ballot) return;
  voices_[after.to].promise = std::move(promise);
  if (phase_ == Phase::kPreparing) {
    phase_ = Phase::kGathering;
    if (can_decide()) send(others(), schema::Prepare{ballot_});
  }
  try_to_choose(now_ms);
}

// --- what is decided ---

void ViewChange::learn(const schema::NextView& next, std::uint64_t now_ms) {
  if (next.number <= view_.number() || next.members.empty() || !peers_.knows(Seat(next.members.back().seat))) return;
  if (acted_on_ == view_.number()) {
    before_ = view_;
    decision_times_ = times_;
    decision_times_.decided_ms = now_ms;
    const std::uint64_t step = standing_.step;
    reaches_ = frozen_ && (next.start == step || (standing_.goes_back && next.start + 1 == step));
  }
  vote_ = {vote_.key, next, {}, {}, {}};
  view_ = View(next);
  promise_written_ = accept_written_ = heard_ = {};
  heard_ms_ = now_ms;
  frozen_ = false;
  phase_ = Phase::kNone;
  newcomer_.reset();
  times_ = {};
  hopeless_.clear();
  for (Voice& one : voices_) one.suspected = false;
  write({});
}

// The decision is on disk.
void ViewChange::act(std::uint64_t now_ms) {
  std::vector<Seat> to = peers_.others();
  std::erase_if(to, [this](Seat seat) { return !view_.has(seat) && !before_.has(seat); });
  send_decision(std::move(to));
  const bool follows = view_.number() == acted_on_ + 1;
  acted_on_ = view_.number();
  if (!has_state_) return votes() ? say_that_it_cannot(others()) : void();
  const std::optional<Rank> rank = view_.rank(peers_.self());
  // Another process at this seat may have promised.
  const bool stays = follows && reaches_ && votes() && view_.members()[rank->index()].incarnation == self_.incarnation;
  outcome_ = Outcome{stays, vote_.view};
  if (!stays) {
    if (follows && rank && votes() && !reaches_)
      outcome_->next.why = "it cannot go on from step " + std::to_string(vote_.view.start) +
                           ", as was decided; do all run the same build?";
    out_.emit(LeaveView{vote_.key, outcome_->next});
    return drop_state();
  }
  out_.emit(InstallView{vote_.key, vote_.view, decision_times_});
  for (const Seat seat : view_.seats()) {
    Voice& one = voices_[seat];
    // What a newcomer said of itself was about the time before.
    if (!before_.has(seat) && one.presence != Presence::kAway) one.presence = Presence::kHere;
    if (!std::exchange(one.broke, false) && one.presence == Presence::kHere) continue;
    suspect(seat, std::string(one.why), now_ms, true);
    if (one.presence != Presence::kAway) one.presence = Presence::kHere;  // if it is not its next promise says so
  }
  if (!unfit_.empty()) suspect(peers_.self(), unfit_, now_ms, true);
  proceed(now_ms);
}

void ViewChange::speaks(Seat from, std::uint32_t view, std::uint64_t now_ms) {
  if (view == 0 || view >= view_.number() || acted_on_ != view_.number()) return;
  std::optional<std::uint64_t>& answered_ms = voices_[from].answered_ms;
  if (answered_ms && now_ms < *answered_ms + kAnswerMs) return;
  answered_ms = now_ms;
  send_decision({from});
}

void ViewChange::frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                       std::uint64_t now_ms) {
  if (const auto* decide = std::get_if<schema::Decide>(&body)) {
    if (decide->view.number != header.view + 1) return;
    if (voices_[from].presence == Presence::kAway) is_now(from, Presence::kHere, now_ms);
    speaks(from, decide->view.number, now_ms);
    return learn(decide->view, now_ms);
  }
  speaks(from, header.view, now_ms);
  if (header.view != view_.number() || !view_.has(from) || !votes()) return;
  if (voices_[from].presence == Presence::kAway) is_now(from, Presence::kHere, now_ms);
  std::visit([&](const auto& one) { on(from, one, now_ms); }, body);
}

}  // namespace tg::daemon

#include "daemon/membership/start.h"

#include <algorithm>

#include "daemon/membership/duration_text.h"
#include "kernels/base/check.h"
#include "schema/options/job.h"

namespace tg::daemon {

namespace {

// The names of the nodes that a proposal asks.
std::vector<std::string> asked_in(const schema::Propose& proposal) {
  if (proposal.members.empty()) return proposal.names;
  std::vector<std::string> names;
  for (const std::uint32_t seat : proposal.members) names.push_back(proposal.names[seat]);
  return names;
}

bool allows_joins(const std::string& spec) {
  const Result<schema::JobSpec> job = schema::parse_job(spec, "job");
  return job.ok() && job->join_limit_ms > 0;
}

}  // namespace

const RunIdentity* Start::current() const {
  if (pending_) return &pending_->run();
  return phase_ == Phase::kNone ? nullptr : &run_;
}

// Why a claim or start is refused; "" if the right to propose is free. A pending start does not hold it.
std::string Start::busy_reason() const {
  const auto taken = [this](const std::string& id, schema::RunState state, Seat by) {
    return "run " + id + " is already " + std::string(to_word(state)) + ", proposed by " + name(by) +
           "; wait for it, or stop it: tgctl stop " + id;
  };
  if (lifecycle_.is_active()) return taken(lifecycle_.run().id, lifecycle_.state(), lifecycle_.proposer());
  if (phase_ != Phase::kNone) return taken(run_.id, schema::RunState::kStarting, proposer_);
  const std::optional<ProposalRight::Holder>& holder = right_.holder();
  return holder ? taken(holder->run_id, schema::RunState::kStarting, holder->seat) : "";
}

void Start::reserve(Phase phase, RunIdentity run, Seat proposer, std::uint64_t deadline_ms) {
  TG_CHECK(!pending_ && phase_ == Phase::kNone && !lifecycle_.is_active(), run.id);
  phase_ = phase;
  run_ = std::move(run);
  participants_ = run_.members.empty() ? peers_.all() : run_.members;
  set_members(participants_);
  proposer_ = proposer;
  deadline_ms_ = deadline_ms;
  offers_.begin(participants_);
  votes_.clear();
  early_failure_.reset();
  own_vote_.reset();
  stop_asked_ = false;
}

// The first view's members, as far as they are chosen.
void Start::set_members(const std::vector<Seat>& members) {
  run_.members = members;
  schema::NextView first{.number = View::kFirst, .names = run_.names};
  for (std::uint32_t number = 0; number < run_.names.size(); ++number)
    if (const auto seat = peers_.seat_of(run_.names[number]); seat && std::ranges::count(members, *seat) > 0)
      first.members.push_back({.seat = number, .weight = run_.weights[*seat]});
  view_ = View(first, peers_.names());
}

// Every participant gets a seat in the run.
Status Start::give_seats() {
  for (const Seat seat : participants_) run_seat(run_.names, name(seat));
  if (run_.names.size() <= schema::kMaxMembers) return {};
  return Error{ErrorKind::kRefused, "run " + run_.id + " has given all of its " + std::to_string(schema::kMaxMembers) +
                                        " seats, and has none for " + run_.names.back() + "; resume it --without " +
                                        run_.names.back()};
}

void Start::drop() {
  TG_CHECK(phase_ != Phase::kNone);
  votes_.clear();
  phase_ = Phase::kNone;
  out_.emit(DropRun{run_.run_key});
}

void Start::hand_over(ExchangeChoice choice) {
  phase_ = Phase::kNone;
  const View view(first_view(choice.commit), peers_.names());
  lifecycle_.begin(run_, view, proposer_, std::move(choice));
}

std::vector<Seat> Start::other_participants() const {
  std::vector<Seat> seats = participants_;
  std::erase(seats, peers_.self());
  return seats;
}

// Whether the commit names all members, and this one with the directory that it voted with.
bool Start::matches_members(const schema::Commit& commit) const {
  if (commit.names != run_.names || !peers_.unknown_in(first_view(commit)).empty()) return false;
  const View view(first_view(commit), peers_.names());
  return view.seats() == view_.seats() && view.has_voter(peers_.self(), self_.directory);
}

// --- events ---

void Start::on_connected(std::uint64_t now_ms) {
  if (pending_ && !pending_->claiming()) try_to_claim(now_ms);
  if (phase_ == Phase::kPreparing && own_vote_ && !stop_asked_) try_to_vote(now_ms);
}

void Start::on_disconnected(Seat peer) {
  right_.on_peer_lost(peer);
  // While a member prepares no frame but its offer or its vote is due: a connection that comes back does no harm.
  if ((phase_ == Phase::kOffering || phase_ == Phase::kPreparing) && peer != proposer_) return;
  on_peer_lost(peer, own_name() + " lost the connection to " + name(peer));
}

// A node that gets another key has not voted; it votes once it is connected to all.
void Start::on_rekey(Seat peer, std::uint64_t now_ms) {
  right_.on_peer_lost(peer);
  if (phase_ != Phase::kNone && !is_member(peer) && peer != proposer_) return;
  if (is_participant() && peer != proposer_) return;
  if (!is_proposer() || now_ms >= give_up_ms_) return on_disconnected(peer);
  propose_anew({ErrorKind::kUnreachable, name(peer), "prepare",
                "the link between " + own_name() + " and " + name(peer) + " gets another cluster key"},
               now_ms);
}

void Start::on_incompatible_peer(Seat peer, const std::string& why, std::uint64_t now_ms) {
  if (!pending_ || pending_->claiming() || peers_.connected(peer) || !pending_->is_unrecoverable(now_ms)) return;
  end_pending(schema::RunState::kFailed, ErrorKind::kRunFailed, name(peer) + " cannot join: " + why);
}

void Start::on_peer_lost(Seat peer, const std::string& message) {
  const schema::Fail cause{ErrorKind::kUnreachable, name(peer), "", message};
  if (phase_ != Phase::kNone && !is_member(peer) && peer != proposer_) return;
  if (pending_ && !peers_.connected(pending_->granter(peers_)))
    pending_->wait_again();  // and claim again when it is back
  if (is_proposer()) return fail_proposal(cause);
  if (!is_participant()) return;
  if (peer == proposer_) return drop();
  withdraw_vote(cause);
}

void Start::on_prepare_progress(Seat seat, std::uint64_t now_ms) {
  const std::vector<Seat> late = missing();
  if (is_proposer() && std::ranges::find(late, seat) != late.end()) deadline_ms_ = now_ms + timeouts_.prepare_ms;
  const bool waits = is_participant() && (phase_ != Phase::kPreparing || !own_vote_);
  if (waits && !stop_asked_) deadline_ms_ = now_ms + timeouts_.prepare_ms + timeouts_.claim_ms;
}

void Start::stop(std::uint64_t now_ms) {
  const std::string reason = "run " + current()->id + " was stopped at " + own_name() + " before it began";
  if (pending_) return end_pending(schema::RunState::kStopped, ErrorKind::kRefused, reason);
  if (is_proposer()) return fail_proposal({ErrorKind::kRefused, own_name(), "prepare", reason});
  // The proposer ends the proposal when it reads this; if it has committed by then, the run stops at once.
  if (stop_asked_) return;
  send({proposer_}, run_.run_key, schema::Vote{false, ErrorKind::kRefused, reason});
  stop_asked_ = true;
  deadline_ms_ = now_ms + timeouts_.claim_ms;
}

void Start::on_failed(const schema::Fail& cause) {
  if (is_proposer()) return fail_proposal(cause);
  if (is_participant()) withdraw_vote(cause);
}

void Start::shut_down() {
  shut_down_ = true;
  right_.withdraw();
  const std::string reason = own_name() + " was shut down";
  if (pending_) end_pending(schema::RunState::kFailed, ErrorKind::kRefused, reason);
  if (is_proposer()) fail_proposal({ErrorKind::kRefused, own_name(), "prepare", reason});
  if (is_participant()) drop();
}

void Start::tick(std::uint64_t now_ms) {
  right_.tick(now_ms);
  if (pending_)
    if (const std::string reason = pending_->overdue(peers_, timeouts_.claim_ms, now_ms); !reason.empty())
      return end_pending(schema::RunState::kFailed, ErrorKind::kRunFailed, reason);
  if (is_proposer() && now_ms >= deadline_ms_) {
    const std::vector<Seat> late = missing();
    const std::string what = phase_ == Phase::kFinding ? " made no progress in finding the run's states for "
                                                       : " made no progress in preparing the run for ";
    return fail_proposal({ErrorKind::kTimeout, name(late.front()), "prepare",
                          peers_.names_of(late) + what + seconds_text(timeouts_.prepare_ms)});
  }
  // Tells the members that this node is still deciding.
  if (is_proposer() && now_ms >= proposed_ms_ + kProposeAgainMs) return send_proposal(now_ms);
  if (!is_participant()) return;
  const bool late = now_ms >= deadline_ms_;
  if (late && phase_ == Phase::kPreparing && own_vote_ && !stop_asked_) return try_to_vote(now_ms);
  if (late || now_ms >= proposed_ms_ + timeouts_.proposer_ms) drop();
}

void Start::on_fail(Seat from, std::uint64_t run_key, const schema::Fail& cause) {
  right_.give_back(run_key, from);
  if (phase_ != Phase::kNone && run_.run_key == run_key) on_peer_failed(from, cause);
}

// A Goodbye carries the sender's run, 0 = none. Another run's does not concern this one; a node in no run is still lost
// to a proposal.
void Start::on_goodbye(Seat from, std::uint64_t run_key) {
  right_.on_peer_lost(from);
  if (phase_ == Phase::kNone || (run_.run_key != run_key && !(is_proposer() && run_key == 0 && is_member(from))))
    return;
  on_peer_failed(from, {ErrorKind::kUnreachable, name(from), "prepare", name(from) + " was shut down"});
}

// A member that reports a failure may have seen the commit; this node's is then in flight.
void Start::on_peer_failed(Seat from, const schema::Fail& cause) {
  if (from != proposer_ && std::ranges::find(participants_, from) == participants_.end()) return;
  if (is_proposer()) return fail_proposal(cause);
  if (from == proposer_) return drop();
  if (!early_failure_) early_failure_ = cause;
}

// --- a start at this node ---

void Start::start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms) {
  std::string why = shut_down_ ? own_name() + " is being shut down" : busy_reason();
  if (why.empty() && pending_)
    why = "run " + pending_->run().id + " is already PENDING, started at " + own_name() +
          "; wait for it, or stop it: tgctl stop " + pending_->run().id;
  if (!why.empty()) return out_.emit(AnswerStart{token, run.id, Error{ErrorKind::kRefused, why}});
  pending_.emplace(token, std::move(run), now_ms);
  try_to_claim(now_ms);
}

void Start::try_to_claim(std::uint64_t now_ms) {
  if (!pending_->disconnected(peers_).empty()) return;
  const Seat granter = pending_->granter(peers_);
  if (peers_.self() != granter) {
    pending_->claim(now_ms);
    return send({granter}, pending_->run().run_key, schema::Claim{pending_->run().id});
  }
  if (const std::string taken = busy_reason(); !taken.empty()) return refuse_pending(take_pending(), taken);
  propose(now_ms);
}

void Start::on_claim(Seat from, std::uint64_t run_key, const schema::Claim& claim, std::uint64_t now_ms) {
  const bool again = right_.held_by(run_key, from);
  const std::string taken = shut_down_ ? own_name() + " is being shut down" : again ? "" : busy_reason();
  if (taken.empty()) right_.grant({run_key, claim.run_id, from}, now_ms);
  send({from}, run_key, schema::Grant{taken.empty(), taken});
}

void Start::on_grant(Seat from, std::uint64_t run_key, const schema::Grant& grant, std::uint64_t now_ms) {
  if (!is(run_key) || !pending_ || !pending_->claiming() || from != pending_->granter(peers_)) {
    if (grant.granted && !is(run_key) && !lifecycle_.is_run(run_key)) give_grant_back(from, run_key);
    return;
  }
  if (!grant.granted) return refuse_pending(take_pending(), grant.message);
  if (pending_->disconnected(peers_).empty() && !right_.holder()) return propose(now_ms);
  give_grant_back(from, run_key);
  pending_->wait_again();
}

void Start::give_grant_back(Seat granter, std::uint64_t run_key) {
  if (peers_.self() == granter) return;
  send({granter}, run_key, schema::Fail{ErrorKind::kRefused, own_name(), "claim", "the start was withdrawn"});
}

void Start::refuse_pending(const PendingStart& start, const std::string& message) {
  out_.emit(AnswerStart{start.token(), start.run().id, Error{ErrorKind::kRefused, message}});
  out_.emit(DropRun{start.run().run_key});
}

// A new run that was never proposed is recorded on the asked node; a resumed one has its record.
void Start::end_pending(schema::RunState state, ErrorKind kind, const std::string& reason) {
  const PendingStart start = take_pending();
  if (start.claiming()) give_grant_back(start.granter(peers_), start.run().run_key);
  // The end is recorded before the answer.
  if (!start.run().resume) out_.emit(EndRun{start.run().run_key, start.run().id, state, reason, {}});
  out_.emit(AnswerStart{start.token(), start.run().id, Error{kind, reason}});
  if (start.run().resume) out_.emit(DropRun{start.run().run_key});
}

// --- as the proposer ---

void Start::propose(std::uint64_t now_ms) {
  const PendingStart start = take_pending();
  RunIdentity run = start.run();
  const bool finds = run.resume.has_value();
  if (!finds) run.weights = peers_.weights();
  reserve(finds ? Phase::kFinding : Phase::kProposing, std::move(run), peers_.self(), now_ms + timeouts_.prepare_ms);
  token_ = start.token();
  give_up_ms_ = start.deadline_ms();
  if (const Status given = give_seats(); !given.ok())
    return fail_proposal({given.error().kind, "", "prepare", given.error().message});
  set_members(participants_);
  send_proposal(now_ms);
  find_or_prepare();
}

void Start::find_or_prepare() {
  if (run_.resume && !run_.resume->start) return out_.emit(ListSavedStates{run_});
  if (is_member(peers_.self())) out_.emit(PrepareRun{run_, view_});
}

void Start::send_proposal(std::uint64_t now_ms) {
  proposed_ms_ = now_ms;
  schema::Propose proposal{.run_id = run_.id, .spec = run_.spec, .resume = run_.resume, .names = run_.names};
  for (const std::string& node : run_.names) {
    const std::optional<Seat> seat = peers_.seat_of(node);
    proposal.weights.push_back(seat ? run_.weights[*seat] : 1);
  }
  if (view_.size() < run_.names.size())
    for (const schema::ViewMember& member : view_.members()) proposal.members.push_back(member.seat);
  send(other_participants(), run_.run_key, std::move(proposal));
}

void Start::add_offer(Seat from, schema::Offer offer, std::uint64_t now_ms) {
  if (!offers_.take(from, std::move(offer)) || !offers_.missing().empty()) return;
  const ChosenState chosen = offers_.choose(run_.id, *run_.resume, {run_.resume->unasked, allows_joins(run_.spec)});
  if (const auto* none = std::get_if<StateRefusal>(&chosen))
    return fail_proposal({none->error.kind, none->node, "prepare", none->error.message});
  const auto& [state, members, names] = std::get<ResumePoint>(chosen);
  run_.resume->start = state;
  if (!names.empty()) run_.names = names;
  if (const Status given = give_seats(); !given.ok())
    return fail_proposal({given.error().kind, "", "prepare", given.error().message});
  set_members(members);
  if (run_.not_from && run_.not_from->same_bits(*run_.resume->start))
    return fail_proposal({ErrorKind::kRefused, "", "prepare",
                          "it has begun repeatedly at step " + std::to_string(run_.not_from->step) +
                              " without reaching its next checkpoint; tgctl resume " + run_.id +
                              " begins there once more"});
  phase_ = Phase::kProposing;
  deadline_ms_ = now_ms + timeouts_.prepare_ms;
  send_proposal(now_ms);
  find_or_prepare();
}

void Start::on_offer(Seat from, std::uint64_t run_key, const schema::Offer& offer, std::uint64_t now_ms) {
  if (phase_ == Phase::kFinding && run_.run_key == run_key) add_offer(from, offer, now_ms);
}

void Start::add_vote(Seat from, const schema::Vote& vote) {
  if (phase_ == Phase::kFinding && vote.accepted) return;  // no state is proposed yet
  if (const std::optional<schema::Fail> cause = votes_.take(from, vote)) return fail_proposal(*cause);
  if (phase_ == Phase::kProposing && missing().empty()) commit();
}

void Start::on_vote(Seat from, std::uint64_t run_key, const schema::Vote& vote) {
  if (is_proposer() && run_.run_key == run_key && is_member(from)) add_vote(from, vote);
}

std::vector<Seat> Start::missing() const {
  if (phase_ == Phase::kFinding) return offers_.missing();
  std::vector<Seat> seats = votes_.missing();
  std::erase_if(seats, [this](Seat seat) { return !is_member(seat); });
  return seats;
}

void Start::fail_proposal(const schema::Fail& cause) {
  send(other_participants(), run_.run_key, cause);
  out_.emit(AnswerStart{token_, run_.id, Error{cause.kind, cause.message}});
  drop();
}

// All drop the proposal. Another run key is drawn, so that late frames of this one do not count for the next.
void Start::propose_anew(const schema::Fail& cause, std::uint64_t now_ms) {
  send(other_participants(), run_.run_key, cause);
  RunIdentity run = run_;
  run.start_timeout_ms = give_up_ms_ - now_ms;
  if (run.resume) {
    run.resume->start.reset();
    run.members = participants_;
  }
  drop();
  out_.emit(RestartProposal{token_, std::move(run)});
}

void Start::commit() {
  Result<ExchangeChoice> choice = votes_.decide(run_, view_);
  if (!choice) return fail_proposal({choice.error().kind, own_name(), "prepare", choice.error().message});
  votes_.clear();
  send(other_participants(), run_.run_key, choice->commit);
  if (is_member(peers_.self()))
    hand_over(*std::move(choice));
  else
    drop();
  out_.emit(AnswerStart{token_, run_.id, Status(), run_.resume ? run_.resume->start->step : 0});
}

// --- as a member ---

// "" if this node can take part.
std::string Start::refusal_reason(Seat from, const schema::Propose& proposal,
                                  const std::vector<std::string>& asked) const {
  if (shut_down_) return own_name() + " is being shut down";
  if (phase_ != Phase::kNone || lifecycle_.is_active()) return busy_reason();
  const std::uint16_t weight = peers_.weights()[peers_.self()];
  for (const std::string& node : asked)
    if (!peers_.seat_of(node))
      return "no peer line of " + own_name() + " names " + node + ", which " + name(from) +
             " asks to take part in run " + proposal.run_id + "; add that line to the tgd.conf of " + own_name();
  if (proposal.resume && proposal.resume->start)
    return own_name() + " had given up waiting for run " + proposal.run_id + " to resume; resume it again";
  // A resumed run keeps its weights.
  std::vector<std::string> names = proposal.names;
  if (!proposal.resume && proposal.weights[Seat(run_seat(names, own_name()))] != weight)
    return name(from) + " does not know yet that " + own_name() + " has weight " + std::to_string(weight) +
           "; start it again";
  return "";
}

void Start::on_propose(Seat from, std::uint64_t run_key, const schema::Propose& proposal, std::uint64_t now_ms) {
  if (phase_ != Phase::kNone && run_.run_key == run_key) {
    if (from == proposer_) on_repeated_proposal(proposal, now_ms);
    return;
  }
  const std::vector<std::string> names = asked_in(proposal);
  if (std::ranges::find(names, own_name()) == names.end()) return;
  const auto refuse = [&](const std::string& message) {
    send({from}, run_key, schema::Vote{false, ErrorKind::kRefused, message});
  };
  if (const std::string why = refusal_reason(from, proposal, names); !why.empty()) return refuse(why);
  if (own_name() == *std::ranges::min_element(names) && !right_.spend(run_key, from))
    return refuse("the right to start run " + proposal.run_id + " has lapsed; start it again");
  // The proposer holds the grant: this node's start would be refused with its id.
  const std::optional<PendingStart> own = std::exchange(pending_, std::nullopt);
  if (own && own->claiming()) give_grant_back(own->granter(peers_), own->run().run_key);
  RunIdentity run{run_key, proposal.run_id, proposal.spec};
  run.weights.assign(Peers::kMax, 1);
  run.names = proposal.names;
  run.resume = proposal.resume;
  for (const Seat number : proposal.weights.places())
    if (const auto seat = peers_.seat_of(proposal.names[number.index()])) run.weights[*seat] = proposal.weights[number];
  for (const std::string& node : names) run.members.push_back(*peers_.seat_of(node));
  reserve(proposal.resume ? Phase::kOffering : Phase::kPreparing, std::move(run), from,
          now_ms + timeouts_.prepare_ms + timeouts_.claim_ms);
  proposed_ms_ = now_ms;
  if (own) refuse_pending(*own, busy_reason());
  find_or_prepare();
}

// The proposer is still there: it has not heard all offers, or has chosen, or has not heard all votes.
void Start::on_repeated_proposal(const schema::Propose& proposal, std::uint64_t now_ms) {
  proposed_ms_ = now_ms;
  const std::optional<schema::Offer>& own = offers_.of(peers_.self());
  if (phase_ != Phase::kOffering || !own || stop_asked_ || early_failure_ || !proposal.resume) return;
  const std::optional<schema::StateId>& start = proposal.resume->start;
  const std::vector<std::string> names = asked_in(proposal);
  if (start && std::ranges::find(names, own_name()) == names.end())
    return drop();  // it joins the run once that is active
  if (!start) return send({proposer_}, run_.run_key, *own);
  if (std::ranges::find(own->states, *start) == own->states.end())
    return withdraw_vote({ErrorKind::kRefused, own_name(), "prepare",
                          own_name() + " has not offered the state of step " + std::to_string(start->step) +
                              " of run " + run_.id + "; resume it again"});
  std::vector<Seat> members;
  for (const std::string& node : names)
    if (const auto seat = peers_.seat_of(node)) members.push_back(*seat);
  run_.resume = proposal.resume;
  run_.names = proposal.names;
  set_members(members);
  phase_ = Phase::kPreparing;
  deadline_ms_ = now_ms + timeouts_.prepare_ms + timeouts_.claim_ms;
  out_.emit(PrepareRun{run_, view_});
}

void Start::on_own_offer(std::uint64_t run_key, schema::Offer offer, std::uint32_t known_lineage,
                         std::uint64_t now_ms) {
  const bool looks = phase_ == Phase::kFinding || phase_ == Phase::kOffering;
  if (!looks || run_.run_key != run_key || offers_.of(peers_.self()) || stop_asked_) return;
  if (known_lineage >= run_.resume->lineage)
    return on_failed({ErrorKind::kRefused, own_name(), "prepare",
                      own_name() + " knows a later lineage of run " + run_.id + " than " + name(proposer_) +
                          " does; ask " + own_name() + ", with --address"});
  if (phase_ == Phase::kFinding) return add_offer(peers_.self(), std::move(offer), now_ms);
  if (early_failure_) return;  // the proposer has this node's refusal
  offers_.take(peers_.self(), offer);
  deadline_ms_ = now_ms + timeouts_.prepare_ms + timeouts_.claim_ms;
  send({proposer_}, run_.run_key, std::move(offer));
}

void Start::on_prepared(std::uint64_t run_key, const schema::Vote& vote, std::uint64_t now_ms,
                        const engine::EachName& names) {
  if (phase_ == Phase::kNone || run_.run_key != run_key) return;
  votes_.know(names);
  schema::Vote own = vote;
  own.directory = self_.directory;
  own.incarnation = self_.incarnation;
  if (phase_ == Phase::kProposing) return add_vote(peers_.self(), own);
  if (phase_ != Phase::kPreparing || own_vote_ || stop_asked_) return;
  own_vote_ = std::move(own);
  // Members connect to each other at their own pace; the proposer knows only its own connections.
  deadline_ms_ = now_ms + timeouts_.claim_ms;
  try_to_vote(now_ms);
}

void Start::try_to_vote(std::uint64_t now_ms) {
  schema::Vote vote = *own_vote_;
  std::vector<Seat> disconnected = view_.seats();
  if (!is_member(proposer_)) disconnected.push_back(proposer_);
  std::erase_if(disconnected, [this](Seat seat) { return peers_.connected(seat); });
  if (vote.accepted && early_failure_) {
    vote = {false, early_failure_->kind, early_failure_->message};
  } else if (vote.accepted && !disconnected.empty()) {
    if (now_ms < deadline_ms_) return;
    vote = {false, ErrorKind::kUnreachable, own_name() + " is not connected to " + peers_.names_of(disconnected)};
  }
  phase_ = Phase::kVoted;
  deadline_ms_ = now_ms + timeouts_.prepare_ms;
  send({proposer_}, run_.run_key, vote);
}

// The proposer is sent a refusal, whether or not the vote has left; what it has decided by then stands.
void Start::withdraw_vote(schema::Fail cause) {
  if (early_failure_) return;
  send({proposer_}, run_.run_key, schema::Vote{false, cause.kind, cause.message});
  early_failure_ = std::move(cause);
}

void Start::on_commit(Seat from, std::uint64_t run_key, const schema::Commit& commit) {
  // A node that refused has nothing prepared, whatever the proposer says.
  const bool waits =
      phase_ == Phase::kVoted && run_.run_key == run_key && own_vote_ && own_vote_->accepted && matches_members(commit);
  if (!waits) {
    const std::string late = own_name() + " had given up waiting for the run to begin";
    return send({from}, run_key, schema::Fail{ErrorKind::kRunFailed, own_name(), "prepare", late});
  }
  if (from != proposer_) return;
  hand_over({commit, "", 0});
  if (!early_failure_ && stop_asked_) lifecycle_.stop();
}

}  // namespace tg::daemon

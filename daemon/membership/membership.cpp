#include "daemon/membership/membership.h"

#include <utility>

#include "kernels/base/check.h"
#include "schema/options/job.h"
#include "schema/text.h"

namespace tg::daemon {
namespace {

bool is_view_change_frame(const schema::FrameBody& body) {
  return std::holds_alternative<schema::Suspect>(body) || std::holds_alternative<schema::Prepare>(body) ||
         std::holds_alternative<schema::Promise>(body) || std::holds_alternative<schema::Nack>(body) ||
         std::holds_alternative<schema::Accept>(body) || std::holds_alternative<schema::Accepted>(body) ||
         std::holds_alternative<schema::Decide>(body);
}

bool is_join_frame(const schema::FrameBody& body) {
  return std::holds_alternative<schema::Join>(body) || std::holds_alternative<schema::Invite>(body) ||
         std::holds_alternative<schema::Quiesce>(body) || std::holds_alternative<schema::SnapshotOffer>(body) ||
         std::holds_alternative<schema::SnapshotRequest>(body) || std::holds_alternative<schema::SnapshotDone>(body) ||
         std::holds_alternative<schema::Leave>(body);
}

}  // namespace

Membership::Membership(MembershipOptions options)
    : peers_(std::move(options.names), options.self),
      lifecycle_(peers_, out_, {options.blamed_timeout_ms, options.leaving_timeout_ms}),
      start_(peers_, out_, lifecycle_,
             {options.claim_timeout_ms, options.prepare_timeout_ms, options.proposer_timeout_ms},
             {options.directory, options.incarnation}),
      self_{options.directory, options.incarnation, options.peer_timeout_ms},
      joiner_(peers_, out_, {options.directory, options.incarnation}) {
  peers_.set_weight(options.self, options.weight);
}

std::vector<MembershipAction> Membership::take_actions() {
  for (OutcomeSyncStep& action : lifecycle_.outcome_sync().take_actions())
    std::visit([this](auto& one) { out_.emit(std::move(one)); }, action);
  std::vector<MembershipAction> actions = out_.take();
  // After a final outcome no member needs this node's vote.
  for (const MembershipAction& action : actions) {
    if (const auto* news = std::get_if<RecordEnd>(&action); news && schema::is_final(news->end.truth.state))
      voters_.erase(news->run_key);
    if (const auto* end = std::get_if<EndRun>(&action); end && schema::is_final(end->state))
      voters_.erase(end->run_key);
  }
  return actions;
}

std::optional<schema::RunState> Membership::state() const {
  if (lifecycle_.is_active()) return pause_reason().empty() ? lifecycle_.state() : schema::RunState::kPaused;
  if (joiner_.has_reserved()) return schema::RunState::kStarting;
  return start_.current() == nullptr ? std::nullopt : std::optional(start_.state());
}

ViewChange* Membership::change_of(std::uint64_t run_key) {
  if (change_ && lifecycle_.is_run(run_key)) return change_.get();
  const auto found = voters_.find(run_key);
  return found == voters_.end() ? nullptr : found->second.change.get();
}

const ViewChange* Membership::voter_in(const std::string& run_id) const {
  for (const auto& [run_key, voter] : voters_)
    if (voter.run_id == run_id) return voter.change.get();
  return nullptr;
}

bool Membership::is_key_of_another(std::uint64_t run_key, const std::string& run_id) {
  const PastRun* const past = lifecycle_.outcome_sync().find(run_key);
  const auto voter = voters_.find(run_key);
  return (past != nullptr && past->id != run_id) || (voter != voters_.end() && voter->second.run_id != run_id);
}

void Membership::know_members(const std::string& run_id, const std::vector<Seat>& members) {
  Per<Seat, bool>& known = known_[run_id];
  known.resize(Peers::kMax);
  for (const Seat seat : members) known[seat] = true;
}

// Whether the peer is a member of a view of this run, of any lineage, that is known here.
bool Membership::knows(Seat peer, std::uint64_t run_key) {
  const PastRun* const past = lifecycle_.outcome_sync().find(run_key);
  const auto voter = voters_.find(run_key);
  const auto found = known_.find(lifecycle_.is_run(run_key) ? lifecycle_.run().id
                                 : voter != voters_.end()   ? voter->second.run_id
                                 : past != nullptr          ? past->id
                                                            : "");
  return found != known_.end() && found->second[peer];
}

// A voter of the run is invited by a member of a view that it knows, or into a later lineage of such a member.
bool Membership::trusts(Seat from, std::uint64_t run_key, const schema::Invite& invite, std::uint64_t now_ms) {
  PastVoter* voter = nullptr;
  for (auto& [key, one] : voters_) {
    if (one.run_id != invite.run_id) continue;
    const bool is_later = key != run_key && invite.lineage > one.lineage && invite.lineage <= one.later_lineage;
    if (knows(from, key) || is_later) return true;
    voter = &one;
  }
  if (voter != nullptr) voter->change->on_hint(from, "invites it", now_ms);
  return voter == nullptr;
}

std::vector<std::string> Membership::voters_of(const std::string& run_id) const {
  const ViewChange* const voter = voter_in(run_id);
  std::vector<std::string> names;
  for (const Seat seat : voter == nullptr ? peers_.all() : voter->view().seats()) names.push_back(peers_.name(seat));
  if (voter == nullptr) std::ranges::sort(names);  // the first one proposes: the same on every node
  return names;
}

template <class Event>
void Membership::for_each_change(Event event) {
  if (change_) event(*change_);
  for (auto& [run_key, voter] : voters_) event(*voter.change);
}

// Applies what a view change has decided to the run, and the run's end to the view change.
void Membership::advance(std::uint64_t now_ms) {
  advance_joining(now_ms);
  if (lifecycle_.is_running() && !change_) {
    std::erase_if(voters_, [this](const auto& voter) { return voter.second.run_id == lifecycle_.run().id; });
    const View& view = lifecycle_.view();
    change_ = std::make_unique<ViewChange>(
        peers_, out_, self_,
        VoterState{lifecycle_.run().run_key, {view.number(), view.members(), 0, false, "", view.names()}, {}, {}, {}},
        true);
    change_->record();
    begin_admission();
    if (const std::optional<schema::Fail> failure = start_.take_early_failure()) {
      const std::optional<Seat> peer = peers_.seat_of(failure->node);
      if (failure->kind == ErrorKind::kUnreachable && peer && peers_.is_other(*peer))
        report_loss(*peer, ViewChange::Loss::kUnreachable, failure->message, now_ms);
      else
        on_failed(*failure, now_ms);
    }
  }
  if (!change_) return;
  know_members(lifecycle_.run().id, change_->view().seats());
  if (const auto outcome = change_->take_outcome()) {
    admission_->on_view_installed();
    quiesced_ = false;
    if (outcome->stays)
      lifecycle_.on_view_installed(change_->view());
    else if (ask_to_leave_ms_ && !shut_down_)
      lifecycle_.interrupt(FailureCause::kLeaveRequested, leave_reason() + "; the run continues without it");
    else
      lifecycle_.interrupt(FailureCause::kEvicted, shut_down_
                                                       ? peers_.own_name() + " was shut down"
                                                       : peers_.own_name() + " was evicted: " + outcome->next.why +
                                                             "; the run continues without it");
  }
  if (!change_->unrecoverable().empty())
    lifecycle_.fail(FailureCause::kNoEligibleMember, {ErrorKind::kRunFailed, "", "", change_->unrecoverable()});
  if (shut_down_ && lifecycle_.is_running()) {
    const std::string reason = peers_.own_name() + " was shut down";
    if (change_->is_alone()) lifecycle_.interrupt(FailureCause::kLocalShutdown, reason);
    if (now_ms >= shut_down_ms_ + ViewChange::kLeavingMs) lifecycle_.interrupt(FailureCause::kEvicted, reason);
  }
  if (lifecycle_.is_running()) return;
  if (lifecycle_.has_left()) {
    change_->drop_state();
    voters_[lifecycle_.run().run_key] = {lifecycle_.run().id, std::move(change_), lifecycle_.run().lineage()};
  }
  change_.reset();
  admission_.reset();
  quiesced_ = stop_asked_ = false;
  ask_to_leave_ms_.reset();
}

void Membership::begin_admission() {
  const Result<schema::JobSpec> job = schema::parse_job(lifecycle_.run().spec, "job");
  admission_.emplace(
      peers_, out_, lifecycle_.run(), lifecycle_.choice(),
      Admission::Options{job.ok() ? job->join_limit_ms : 0, self_.peer_timeout_ms, own_vote_, own_names_});
}

// Makes this node a member once a view with it is decided.
void Membership::advance_joining(std::uint64_t now_ms) {
  // A joiner that gave up holds no state of the run.
  for (auto& [run_key, voter] : voters_) {
    know_members(voter.run_id, voter.change->view().seats());
    if (voter.change->has_state() && !(joiner_.is(run_key) && joiner_.has_snapshot())) voter.change->drop_state();
  }
  if (!joiner_.has_reserved()) return;
  const auto found = voters_.find(joiner_.run().run_key);
  if (found == voters_.end()) return;
  ViewChange& change = *found->second.change;
  const auto outcome = change.take_outcome();
  if (!outcome && !joiner_.is_decision_late(now_ms)) return;
  if (!outcome || !outcome->stays) return retry_join(now_ms);
  change_ = std::move(found->second.change);
  const RunIdentity run = joiner_.run();
  std::erase_if(voters_, [&](const auto& voter) { return voter.second.run_id == run.id; });
  lifecycle_.join(run, outcome->next, joiner_.donor(), joiner_.choice());
  joiner_.on_joined();
  begin_admission();
}

void Membership::retry_join(std::uint64_t now_ms) {
  if (ViewChange* const change = change_of(joiner_.run().run_key); change && joiner_.has_snapshot())
    change->drop_state();
  joiner_.retry(now_ms);
}

void Membership::on_connection_changed(Seat peer, bool up, std::uint64_t now_ms, bool rekeys) {
  TG_CHECK(peers_.knows(peer) && peer != peers_.self(), peer.index());
  if (peers_.connected(peer) == up) return;
  peers_.set_connected(peer, up);
  if (up) {
    on_connected(peer, now_ms);
  } else {
    rekeys ? start_.on_rekey(peer, now_ms) : start_.on_disconnected(peer);
    report_loss(peer, ViewChange::Loss::kUnreachable,
                peers_.own_name() + " lost the connection to " + peers_.name(peer), now_ms);
  }
  advance(now_ms);
}

void Membership::on_link_lost(Seat peer, const std::string& message, bool up_again, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(peer) && peer != peers_.self(), peer.index());
  start_.on_peer_lost(peer, message);
  start_.on_disconnected(peer);
  peers_.set_connected(peer, up_again);
  report_loss(peer, up_again ? ViewChange::Loss::kReconnected : ViewChange::Loss::kUnreachable, message, now_ms);
  if (up_again) on_connected(peer, now_ms);
  advance(now_ms);
}

void Membership::on_connected(Seat peer, std::uint64_t now_ms) {
  // The view changes first: a Decide precedes every other frame on a new connection.
  for_each_change([&](ViewChange& change) { change.on_connected(peer, now_ms); });
  lifecycle_.on_connected(peer);
  lifecycle_.outcome_sync().on_connected(peer);
  start_.on_connected(now_ms);
}

void Membership::report_loss(Seat peer, ViewChange::Loss loss, const std::string& why, std::uint64_t now_ms) {
  if (admission_ && loss != ViewChange::Loss::kReconnected) admission_->on_peer_lost(peer, *change_);
  if (loss != ViewChange::Loss::kLeaving) lifecycle_.on_peer_lost(peer, now_ms);  // else its own report follows
  for_each_change(
      [&](ViewChange& change) { change.on_peer_lost(peer, loss, why, now_ms, lifecycle_.is_needed(peer)); });
}

void Membership::on_peer_lines(std::uint64_t now_ms) {
  start_.on_connected(now_ms);  // a start may wait for a node whose line is gone
  advance(now_ms);
}

void Membership::set_weight(Seat peer, std::uint16_t weight) {
  TG_CHECK(peers_.knows(peer) && weight > 0, peer.index(), weight);
  peers_.set_weight(peer, weight);
}

void Membership::on_incompatible_peer(Seat peer, const std::string& why, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(peer), peer.index());
  start_.on_incompatible_peer(peer, why, now_ms);
}

void Membership::start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms) {
  if (joiner_.has_reserved())
    return out_.emit(AnswerStart{token, run.id,
                                 Error{ErrorKind::kRefused, "run " + joiner_.run().id + " is active, and " +
                                                                peers_.own_name() + " is about to join it"}});
  start_.start(token, std::move(run), now_ms);
}

void Membership::on_offer(std::uint64_t run_key, schema::Offer offer, std::uint32_t known_lineage,
                          std::uint64_t now_ms) {
  const RunIdentity* const run = start_.current();
  const ViewChange* const voter = run == nullptr ? nullptr : voter_in(run->id);
  if (voter != nullptr) {
    offer.lineage = known_lineage;
    offer.view = voter->view().number();
    for (const schema::ViewMember& one : voter->view().members()) offer.voters.push_back(one.seat);
    offer.names = voter->view().names();
  }
  start_.on_own_offer(run_key, std::move(offer), known_lineage, now_ms);
}

void Membership::on_prepared(std::uint64_t run_key, const schema::Vote& vote, std::uint64_t now_ms,
                             const engine::EachName& names) {
  if (joiner_.is(run_key) || start_.is(run_key)) {
    own_vote_ = vote;
    own_names_ = names;
  }
  joiner_.on_prepared(run_key, vote, now_ms);
  start_.on_prepared(run_key, vote, now_ms, names);
  advance(now_ms);
}

void Membership::on_prepare_progress(Seat seat, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(seat), seat.index());
  start_.on_prepare_progress(seat, now_ms);
}

void Membership::on_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                          std::uint64_t now_ms) {
  if (!peers_.is_other(from)) return;
  if (is_view_change_frame(body)) {
    ViewChange* const change = change_of(header.run);
    const auto* const decide = std::get_if<schema::Decide>(&body);
    if (change == nullptr) {
      lifecycle_.on_late_frame(from, header.run);
      report_lost_vote(header, body);
    } else if (decide && decide->view.number >= change->view().number() && !knows(from, header.run)) {
      change->on_hint(from, "says that another view was decided", now_ms);
    } else {
      change->on_frame(from, header, body, now_ms);
    }
  } else if (is_join_frame(body)) {
    join_frame(from, header, body, now_ms);
  } else {
    run_frame(from, header, body, now_ms);
  }
  advance(now_ms);
}

// A voter is asked that has lost its vote: all learn it, for only the coordinator asks. A run that begins here has its
// vote soon; a run that goes on here may be a later lineage of that one, as its heartbeats say.
void Membership::report_lost_vote(const schema::FrameHeader& header, const schema::FrameBody& body) {
  const auto* const prepare = std::get_if<schema::Prepare>(&body);
  const auto* const accept = std::get_if<schema::Accept>(&body);
  const PastRun* const past = lifecycle_.outcome_sync().find(header.run);
  const bool is_over = past != nullptr && schema::is_final(past->end.truth.state);
  if ((prepare == nullptr && accept == nullptr) || is_over || lifecycle_.is_active() || start_.is(header.run)) return;
  const auto lost = lost_votes_.find(header.run);
  const std::string why = lost != lost_votes_.end()
                              ? lost->second
                              : "it has no record of the run: its state directory was replaced or emptied";
  const schema::Ballot& ballot = prepare != nullptr ? prepare->ballot : accept->ballot;
  out_.send(peers_.others(), header.run, header.view,
            schema::Promise{.ballot = ballot, .unfit = schema::clip_text(why, schema::kMaxReasonBytes)});
}

void Membership::join_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                            std::uint64_t now_ms) {
  const std::uint64_t run_key = header.run;
  if (const auto* join = std::get_if<schema::Join>(&body)) {
    if (change_ && lifecycle_.is_running() && lifecycle_.run().id == join->run_id)
      admission_->on_join(from, *join, *change_, is_stopping(), now_ms);
    return;
  }
  if (const auto* invite = std::get_if<schema::Invite>(&body)) {
    if (!idle() && !joiner_.has_reserved()) return;
    if (is_key_of_another(run_key, invite->run_id) || !trusts(from, run_key, *invite, now_ms)) return;
    joiner_.on_invite(from, run_key, *invite, now_ms);
    if (ViewChange* const change = joiner_.is(run_key) ? change_of(run_key) : nullptr)
      change->on_decided(invite->view, now_ms);
    return;
  }
  if (const auto* quiesce = std::get_if<schema::Quiesce>(&body)) joiner_.on_quiesce(from, run_key, *quiesce, now_ms);
  if (const auto* offer = std::get_if<schema::SnapshotOffer>(&body))
    joiner_.on_snapshot_offer(from, run_key, header.view, *offer, now_ms);
  if (!change_ || !lifecycle_.is_run(run_key)) return;
  if (header.view != lifecycle_.view().number()) return on_stale_view(from, run_key, header.view, now_ms);
  if (const auto* quiesce = std::get_if<schema::Quiesce>(&body);
      quiesce && from == lifecycle_.view().by_seniority().front()) {
    quiesced_ = !quiesce->over;
    if (quiesced_ && stop_asked_) request_release(peers_.own_name() + " was asked to stop the run");
    const bool leaves = quiesced_ && ask_to_leave_ms_ && quiesce->node == peers_.own_name();
    if (leaves && !change_->in_progress()) change_->leave(leave_reason(), now_ms);
    quiesce->over ? out_.emit(ReleaseRun{run_key, quiesce->why}) : out_.emit(NoteJoin{run_key, quiesce->why});
  }
  if (const auto* quiesce = std::get_if<schema::Quiesce>(&body);
      quiesce && quiesce->over && lifecycle_.view().has(from))
    admission_->cancel(*change_, quiesce->why);
  if (const auto* leave = std::get_if<schema::Leave>(&body))
    admission_->on_leave(from, *leave, *change_, is_stopping(), now_ms);
  if (const auto* request = std::get_if<schema::SnapshotRequest>(&body))
    admission_->on_snapshot_request(from, *request, now_ms);
  if (const auto* done = std::get_if<schema::SnapshotDone>(&body))
    admission_->on_snapshot_done(from, *done, *change_, now_ms);
}

void Membership::on_run_discovered(const std::string& run_id, std::uint64_t now_ms) {
  if (shut_down_ || lifecycle_.is_active() || start_.current() != nullptr) return;
  joiner_.on_run_discovered(run_id, now_ms);
}

void Membership::on_quiesced(std::uint64_t run_key, std::uint64_t now_ms) {
  if (!change_ || !lifecycle_.is_run(run_key)) return;
  admission_->on_quiesced(*change_, now_ms);
  if (admission_->is_leaving(peers_.self()) && ask_to_leave_ms_ && !change_->in_progress())
    change_->leave(leave_reason(), now_ms);
  advance(now_ms);
}

void Membership::on_snapshot_offer(std::uint64_t run_key, schema::SnapshotOffer offer, std::uint64_t now_ms) {
  if (change_ && lifecycle_.is_run(run_key)) admission_->on_snapshot_offer(std::move(offer), *change_, now_ms);
}

void Membership::on_snapshot_done(std::uint64_t run_key, const std::string& why, std::uint64_t now_ms) {
  if (!why.empty()) return joiner_.on_failed(run_key, why, now_ms);
  const schema::NextView view = joiner_.view();
  if (!joiner_.on_snapshot_done(run_key, now_ms)) return;
  PastVoter& voter = voters_[run_key];
  if (!voter.change) {
    voter.run_id = joiner_.run().id;
    voter.lineage = joiner_.run().lineage();
    voter.change = std::make_unique<ViewChange>(peers_, out_, self_, VoterState{run_key, view, {}, {}, {}}, false);
  }
  if (voter.change->newest() != view) return retry_join(now_ms);
  voter.change->install_snapshot(joiner_.state().step);
  advance(now_ms);
}

void Membership::run_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                           std::uint64_t now_ms) {
  const std::uint64_t run_key = header.run;
  const bool begun = lifecycle_.is_run(run_key);
  // Ends and leaves count in any view.
  if (const auto* cause = std::get_if<schema::Fail>(&body)) {
    start_.on_fail(from, run_key, *cause);
    if (begun) lifecycle_.on_fail(from, *cause);
  }
  if (std::holds_alternative<schema::Goodbye>(body)) {
    start_.on_goodbye(from, run_key);
    if (begun) report_loss(from, ViewChange::Loss::kLeaving, peers_.name(from) + " was shut down", now_ms);
  }
  // Not of a run that is about to begin: its commit is in flight, or the reservation times out.
  const auto* const ended = std::get_if<schema::Ended>(&body);
  const bool known = knows(from, run_key);
  if (ended && !known && !start_.is(run_key)) {
    if (ended->asks) lifecycle_.on_late_frame(from, run_key);
    if (ViewChange* const change = change_of(run_key)) change->on_hint(from, "says that the run has ended", now_ms);
  }
  if (ended && joiner_.is(run_key) && schema::is_final(ended->state) && (known || from == joiner_.donor()))
    joiner_.drop();
  if (ended && known && !start_.is(run_key)) {
    lifecycle_.on_ended(from, run_key, *ended, now_ms);
    const bool is_deleted = voters_.contains(run_key) && lifecycle_.outcome_sync().find(run_key) == nullptr;
    if (is_deleted && !begun && schema::is_final(ended->state)) out_.emit(RecordEnd{run_key, {*ended, {}}});
    // Not of its earlier membership.
    if (begun && ended->state == schema::RunState::kInterrupted && header.view >= lifecycle_.view().since(from))
      report_loss(from, ViewChange::Loss::kLeaving, ended->reason, now_ms);
  }
  if (header.view != view_number(run_key)) return on_stale_view(from, run_key, header.view, now_ms);
  if (const auto* claim = std::get_if<schema::Claim>(&body)) {
    if (joiner_.has_reserved())
      out_.send({from}, run_key, View::kFirst, schema::Grant{false, "run " + joiner_.run().id + " is active"});
    else
      start_.on_claim(from, run_key, *claim, now_ms);
  }
  if (const auto* grant = std::get_if<schema::Grant>(&body)) start_.on_grant(from, run_key, *grant, now_ms);
  if (const auto* proposal = std::get_if<schema::Propose>(&body);
      proposal && !is_key_of_another(run_key, "") && !begun) {
    joiner_.drop();  // the run it was about to join has ended
    start_.on_propose(from, run_key, *proposal, now_ms);
  }
  if (const auto* offer = std::get_if<schema::Offer>(&body)) start_.on_offer(from, run_key, *offer, now_ms);
  if (const auto* vote = std::get_if<schema::Vote>(&body)) start_.on_vote(from, run_key, *vote);
  if (const auto* verdict = std::get_if<schema::Commit>(&body); verdict && !begun)
    start_.on_commit(from, run_key, *verdict);
}

void Membership::on_stale_view(Seat from, std::uint64_t run_key, std::uint32_t view, std::uint64_t now_ms) {
  if (!peers_.is_other(from)) return;
  if (ViewChange* const change = change_of(run_key)) change->on_stale_view(from, view, now_ms);
}

void Membership::on_heartbeat(Seat from, const schema::Heartbeat& beat, const Held& own, std::uint64_t now_ms) {
  const std::string& run_id = beat.lineage_run();
  // It is in another lineage, and will not report the end of this one.
  if (!change_ && lifecycle_.is_active() && lifecycle_.run().id == run_id && beat.key != 0 &&
      !lifecycle_.is_run(beat.key))
    return lifecycle_.on_peer_lost(from, now_ms);
  if (change_ && lifecycle_.run().id == run_id) {
    const Heard heard = compare(lineage_of(beat), own);
    if (heard == Heard::kSame) return on_stale_view(from, lifecycle_.run().run_key, beat.view, now_ms);
    if (heard == Heard::kLower) return;
    if (!knows(from, lifecycle_.run().run_key)) return change_->on_hint(from, "says that the run was resumed", now_ms);
    lifecycle_.interrupt(FailureCause::kEvicted,
                         heard == Heard::kHigher
                             ? peers_.own_name() + " was evicted: the run was resumed without it"
                             : contradiction_text(peers_.name(from), lineage_of(beat), peers_.own_name(), own));
    return advance(now_ms);
  }
  for (auto& [run_key, voter] : voters_) {
    if (voter.run_id != run_id) continue;
    if (knows(from, run_key) && beat.lineage > voter.lineage) voter.later_lineage = beat.lineage;
    if (run_key == beat.key) return on_stale_view(from, run_key, beat.view, now_ms);
  }
}

void Membership::on_sealed(std::uint64_t run_key, const SealReport& report, std::uint64_t now_ms) {
  if (ViewChange* const change = change_of(run_key)) change->on_sealed(report, now_ms);
  advance(now_ms);
}

void Membership::on_vote_written(std::uint64_t run_key, const std::string& problem, std::uint64_t now_ms) {
  if (ViewChange* const change = change_of(run_key)) change->on_vote_written(problem, now_ms);
  advance(now_ms);
}

void Membership::on_disk_problem(const std::string& why, std::uint64_t now_ms) {
  if (change_) change_->on_disk_problem(why, now_ms);
  advance(now_ms);
}

void Membership::on_peer_lost(Seat peer, const std::string& message, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(peer), peer.index());
  start_.on_peer_lost(peer, message);
  if (peer != peers_.self())
    report_loss(peer, ViewChange::Loss::kUnreachable, message, now_ms);
  else if (change_)
    change_->on_ineligible(message, now_ms);
  advance(now_ms);
}

Status Membership::stop(const std::string& run_id, std::uint64_t now_ms) {
  if (idle() || current()->id != run_id)
    return Error{ErrorKind::kNotFound, "no run " + run_id + " is in progress on " + peers_.own_name()};
  if (joiner_.has_reserved())
    return Error{ErrorKind::kRefused,
                 peers_.own_name() + " is about to join run " + run_id + "; ask one of its members, with --address"};
  if (!pause_reason().empty()) {
    lifecycle_.interrupt(FailureCause::kStopWhilePaused,
                         (change_->step() ? "left at step " + std::to_string(*change_->step()) : "left") +
                             ": stopped here while PAUSED");
    advance(now_ms);
  } else if (lifecycle_.is_active()) {
    lifecycle_.stop();
    stop_asked_ = true;
    request_release(peers_.own_name() + " was asked to stop the run");
  } else {
    start_.stop(now_ms);
  }
  return {};
}

Status Membership::leave(std::uint64_t now_ms) {
  const auto refused = [](std::string why) { return Error{ErrorKind::kRefused, std::move(why)}; };
  if (!change_ || !lifecycle_.is_running())
    return refused(peers_.own_name() + (idle() ? " is in no run" : " has not begun run " + current()->id + " yet"));
  const std::string& run = lifecycle_.run().id;
  if (!pause_reason().empty())
    return refused("run " + run + " is PAUSED and may need this node; tgctl stop " + run +
                   " interrupts it and keeps its state");
  if (is_stopping()) return refused("run " + run + " is about to end");
  if (lifecycle_.view().size() == 1)
    return refused(peers_.own_name() + " is the only member of run " + run + "; tgctl stop " + run + " ends it");
  ask_to_leave_ms_ = now_ms;
  ask_to_leave(now_ms);
  return {};
}

// The members shall not wait for a join any more: the senior releases them.
void Membership::request_release(const std::string& why) {
  if (!change_ || !lifecycle_.is_running()) return;
  const Seat senior = lifecycle_.view().by_seniority().front();
  if (senior == peers_.self()) return admission_->cancel(*change_, why);
  if (!quiesced_) return;
  out_.send({senior}, lifecycle_.run().run_key, lifecycle_.view().number(),
            schema::Quiesce{.node = peers_.own_name(), .over = true, .why = why});
}

void Membership::stay_out() { joiner_.drop(); }

void Membership::ask_to_leave(std::uint64_t now_ms) {
  if (!ask_to_leave_ms_) return;
  if (lifecycle_.view().size() == 1) return ask_to_leave_ms_.reset();  // the last member stays
  const bool needed = !pause_reason().empty();                         // the run may need this node to resume
  if (needed && !shut_down_) change_->stay();
  if (now_ms < *ask_to_leave_ms_ || change_->in_progress()) return;
  ask_to_leave_ms_ = now_ms + ViewChange::kRepeatMs;
  const Seat senior = lifecycle_.view().by_seniority().front();
  if (senior != peers_.self())
    return out_.send({senior}, lifecycle_.run().run_key, lifecycle_.view().number(), schema::Leave{});
  admission_->on_leave(senior, schema::Leave{}, *change_, is_stopping(), now_ms);
}

void Membership::on_failed(const schema::Fail& cause, std::uint64_t now_ms) {
  start_.on_failed(cause);
  if (cause.kind == ErrorKind::kRunFailed)
    lifecycle_.fail(FailureCause::kTrainingFailure, cause);
  else if (change_)
    change_->on_ineligible(cause.message, now_ms);
  advance(now_ms);
}

void Membership::on_finished(schema::RunState state, const std::string& reason, std::uint64_t now_ms) {
  lifecycle_.finish(state, reason);
  advance(now_ms);
}

void Membership::on_saved(std::uint64_t run_key, const schema::Ended& own, std::uint64_t now_ms) {
  lifecycle_.on_saved(run_key, own, now_ms);
}

void Membership::add_past_run(std::uint64_t run_key, PastRun run) {
  know_members(run.id, run.known);
  lifecycle_.outcome_sync().add(run_key, std::move(run));
}

void Membership::set_aside(std::uint64_t run_key, PastRun run) {
  if (const auto voter = voters_.find(run_key); voter != voters_.end()) voter->second.run_id = run.id;
  add_past_run(run_key, std::move(run));
}

void Membership::add_past_voter(VoterState vote, std::string run_id, std::uint32_t lineage) {
  const PastRun* const past = lifecycle_.outcome_sync().find(vote.run_key);
  if (past != nullptr && schema::is_final(past->end.truth.state)) return;
  if (vote.view.members.empty() || !schema::validation_error(vote.view).empty()) return;
  for (const schema::ViewMember& member : vote.view.members)
    if (const std::string& node = vote.view.names[member.seat]; !peers_.names().place_of(node)) peers_.add_absent(node);
  const std::uint64_t run_key = vote.run_key;
  if (!std::ranges::all_of(vote.view.members, [&](const schema::ViewMember& member) {
        return peers_.names().place_of(vote.view.names[member.seat]).has_value();
      }))
    return add_lost_vote(run_key, "the votes here name more nodes than a process can know; delete old runs there");
  const View view(vote.view, peers_.names());
  if (view.has(peers_.self()) && !view.has_voter(peers_.self(), self_.directory))
    return add_lost_vote(run_key, "its state directory is not the one that it voted with");
  know_members(run_id, view.seats());
  voters_[run_key] = {std::move(run_id), std::make_unique<ViewChange>(peers_, out_, self_, std::move(vote), false),
                      lineage};
}

void Membership::on_stopping() { lifecycle_.on_stopping(); }

void Membership::on_peer_finished(Seat peer) {
  TG_CHECK(peers_.knows(peer), peer.index());
  lifecycle_.on_peer_finished(peer);
}

void Membership::shut_down(std::uint64_t now_ms) {
  if (std::exchange(shut_down_, true)) return;
  shut_down_ms_ = now_ms;
  const std::uint64_t run_key = idle() ? 0 : current()->run_key;
  const bool begun = lifecycle_.is_active();
  start_.shut_down();
  joiner_.drop();
  if (change_) {
    lifecycle_.say_goodbye();
    change_->on_shut_down();
    return advance(now_ms);
  }
  lifecycle_.shut_down(now_ms);
  if (!begun) out_.send(peers_.others(), run_key, View::kFirst, schema::Goodbye{peers_.own_name() + " was shut down"});
}

void Membership::tick(std::uint64_t now_ms) {
  start_.tick(now_ms);
  for_each_change([&](ViewChange& change) { change.tick(now_ms); });
  joiner_.tick(now_ms);
  if (admission_) admission_->tick(*change_, now_ms);
  ask_to_leave(now_ms);
  lifecycle_.tick(now_ms);
  advance(now_ms);
}

}  // namespace tg::daemon

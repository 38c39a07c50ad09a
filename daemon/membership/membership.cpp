#include "daemon/membership/membership.h"

#include <utility>

#include "kernels/base/check.h"
#include "schema/options/job.h"

namespace tg::daemon {
namespace {

bool is_of_a_change(const schema::FrameBody& body) {
  return std::holds_alternative<schema::Suspect>(body) || std::holds_alternative<schema::Prepare>(body) ||
         std::holds_alternative<schema::Promise>(body) || std::holds_alternative<schema::Outvoted>(body) ||
         std::holds_alternative<schema::Accept>(body) || std::holds_alternative<schema::Accepted>(body) ||
         std::holds_alternative<schema::Decide>(body);
}

bool is_of_a_join(const schema::FrameBody& body) {
  return std::holds_alternative<schema::Join>(body) || std::holds_alternative<schema::Invite>(body) ||
         std::holds_alternative<schema::Hold>(body) || std::holds_alternative<schema::Feed>(body) ||
         std::holds_alternative<schema::Want>(body) || std::holds_alternative<schema::Fed>(body) ||
         std::holds_alternative<schema::Leave>(body);
}

}  // namespace

Membership::Membership(MembershipOptions options)
    : peers_(std::move(options.names), options.self),
      end_(peers_, out_, {options.blamed_timeout_ms, options.leaving_timeout_ms}),
      start_(peers_, out_, end_, {options.claim_timeout_ms, options.prepare_timeout_ms, options.proposer_timeout_ms},
             {options.directory, options.incarnation}),
      self_{options.directory, options.incarnation, options.peer_timeout_ms},
      joining_(peers_, out_, {options.directory, options.incarnation}) {
  peers_.set_weight(options.self, options.weight);
}

std::vector<MembershipAction> Membership::take_actions() {
  for (AftermathAction& action : end_.aftermath().take_actions())
    std::visit([this](auto& one) { out_.emit(std::move(one)); }, action);
  std::vector<MembershipAction> actions = out_.take();
  // Nobody needs a vote about what follows an end that all can know.
  for (const MembershipAction& action : actions) {
    if (const auto* news = std::get_if<RecordEnd>(&action); news && schema::is_final(news->end.truth.state))
      voters_.erase(news->key);
    if (const auto* end = std::get_if<EndRun>(&action); end && schema::is_final(end->state)) voters_.erase(end->key);
  }
  return actions;
}

std::optional<schema::RunState> Membership::state() const {
  if (end_.active()) return paused().empty() ? end_.state() : schema::RunState::kPaused;
  if (joining_.prepares()) return schema::RunState::kStarting;
  return start_.current() == nullptr ? std::nullopt : std::optional(start_.state());
}

ViewChange* Membership::change_of(std::uint64_t key) {
  if (change_ && end_.is(key)) return change_.get();
  const auto found = voters_.find(key);
  return found == voters_.end() ? nullptr : found->second.change.get();
}

const ViewChange* Membership::voter_in(const std::string& run_id) const {
  for (const auto& [key, voter] : voters_)
    if (voter.run_id == run_id) return voter.change.get();
  return nullptr;
}

std::vector<Seat> Membership::voters_of(const std::string& run_id) const {
  const ViewChange* const voter = voter_in(run_id);
  return voter == nullptr ? peers_.all() : voter->view().seats();
}

template <class Event>
void Membership::for_each_change(Event event) {
  if (change_) event(*change_);
  for (auto& [key, voter] : voters_) event(*voter.change);
}

// What a view change has come to, and what became of the run.
void Membership::follow(std::uint64_t now_ms) {
  follow_joining(now_ms);
  if (end_.runs() && !change_) {
    std::erase_if(voters_, [this](const auto& voter) { return voter.second.run_id == end_.run().id; });
    const View& view = end_.view();
    change_ = std::make_unique<ViewChange>(
        peers_, out_, self_, VoterState{end_.run().key, {view.number(), view.members()}, {}, {}, {}}, true);
    change_->record();
    begin_admission();
    if (const std::optional<schema::Fail> trouble = start_.take_trouble()) {
      const std::optional<Seat> who = peers_.seat_of(trouble->node);
      if (trouble->kind == ErrorKind::kUnreachable && who && peers_.is_other(*who))
        costs_a_member(*who, ViewChange::Loss::kNotHeard, trouble->message, now_ms);
      else
        failed(*trouble, now_ms);
    }
  }
  if (!change_) return;
  if (const auto outcome = change_->take_outcome()) {
    admission_->installed();
    held_ = false;
    if (outcome->stays)
      end_.install(change_->view());
    else if (ask_to_leave_ms_ && !shut_down_)
      end_.interrupted(Cause::kToldToLeave, words_of_leaving() + "; the run goes on without it");
    else
      end_.interrupted(Cause::kLeftOut, shut_down_ ? peers_.own_name() + " was shut down"
                                                   : peers_.own_name() + " was left out: " + outcome->next.why +
                                                         "; the run goes on without it");
  }
  if (!change_->hopeless().empty())
    end_.failed(Cause::kNobodyFit, {ErrorKind::kRunFailed, "", "", change_->hopeless()});
  if (shut_down_ && end_.runs()) {
    const std::string reason = peers_.own_name() + " was shut down";
    if (change_->alone()) end_.interrupted(Cause::kOwnShutDown, reason);
    if (now_ms >= leaving_ms_ + ViewChange::kLeavingMs) end_.interrupted(Cause::kLeftOut, reason);
  }
  if (end_.runs()) return;
  if (end_.left()) {
    change_->drop_state();
    voters_[end_.run().key] = {end_.run().id, std::move(change_)};
  }
  change_.reset();
  admission_.reset();
  held_ = stop_asked_ = false;
  ask_to_leave_ms_.reset();
}

void Membership::begin_admission() {
  const Result<schema::JobSpec> job = schema::parse_job(end_.run().spec, "job");
  admission_.emplace(
      peers_, out_, end_.run(), end_.choice(),
      Admission::Options{job.ok() ? job->join_limit_ms : 0, self_.peer_timeout_ms, own_vote_, own_names_});
}

// What a change in which this node has no vote yet has come to.
void Membership::follow_joining(std::uint64_t now_ms) {
  // Who does not come in after all has no state of the run.
  for (auto& [key, voter] : voters_)
    if (voter.change->has_state() && !(joining_.is(key) && joining_.is_fed())) voter.change->drop_state();
  if (!joining_.prepares()) return;
  const auto found = voters_.find(joining_.run().key);
  if (found == voters_.end()) return;
  ViewChange& change = *found->second.change;
  const auto outcome = change.take_outcome();
  if (!outcome && !joining_.is_late(now_ms)) return;
  if (!outcome || !outcome->stays) return not_joined(now_ms);
  change_ = std::move(found->second.change);
  const RunIdentity run = joining_.run();
  std::erase_if(voters_, [&](const auto& voter) { return voter.second.run_id == run.id; });
  end_.join(run, outcome->next, joining_.host(), joining_.choice());
  joining_.joined();
  begin_admission();
}

void Membership::not_joined(std::uint64_t now_ms) {
  if (ViewChange* const change = change_of(joining_.run().key); change && joining_.is_fed()) change->drop_state();
  joining_.again(now_ms);
}

void Membership::connection(Seat peer, bool up, std::uint64_t now_ms, bool rekeys) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  if (peers_.connected(peer) == up) return;
  peers_.set_connected(peer, up);
  if (up) {
    came(peer, now_ms);
  } else {
    rekeys ? start_.rekeys(peer, now_ms) : start_.disconnected(peer);
    costs_a_member(peer, ViewChange::Loss::kNotHeard,
                   peers_.own_name() + " lost the connection to " + peers_.name(peer), now_ms);
  }
  follow(now_ms);
}

void Membership::gave_up(Seat peer, const std::string& message, bool up_again, std::uint64_t now_ms) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  start_.lost(peer, message);
  start_.disconnected(peer);
  peers_.set_connected(peer, up_again);
  costs_a_member(peer, up_again ? ViewChange::Loss::kBack : ViewChange::Loss::kNotHeard, message, now_ms);
  if (up_again) came(peer, now_ms);
  follow(now_ms);
}

void Membership::came(Seat peer, std::uint64_t now_ms) {
  // First: nobody hears a frame of a view that he does not know yet.
  for_each_change([&](ViewChange& change) { change.connected(peer, now_ms); });
  end_.connected(peer);
  end_.aftermath().connected(peer);
  start_.connected(now_ms);
}

void Membership::costs_a_member(Seat peer, ViewChange::Loss loss, const std::string& why, std::uint64_t now_ms) {
  if (admission_ && loss != ViewChange::Loss::kBack) admission_->lost(peer, *change_);
  if (loss != ViewChange::Loss::kLeaves) end_.lost(peer, now_ms);  // else its word follows
  for_each_change([&](ViewChange& change) { change.lost(peer, loss, why, now_ms, end_.needs(peer)); });
}

void Membership::weighs(Seat peer, std::uint16_t weight) {
  TG_CHECK(peers_.is_other(peer) && weight > 0, peer.index(), weight);
  peers_.set_weight(peer, weight);
}

void Membership::cannot_join(Seat peer, const std::string& why, std::uint64_t now_ms) {
  TG_CHECK(peers_.is_other(peer), peer.index());
  start_.cannot_join(peer, why, now_ms);
}

void Membership::start(std::uint64_t token, RunIdentity run, std::uint64_t now_ms) {
  if (joining_.prepares())
    return out_.emit(AnswerStart{token, run.id,
                                 Error{ErrorKind::kRefused, "run " + joining_.run().id + " is on, and " +
                                                                peers_.own_name() + " is about to come into it"}});
  start_.start(token, std::move(run), now_ms);
}

void Membership::offered(std::uint64_t key, schema::Offer offer, std::uint32_t known_lineage, std::uint64_t now_ms) {
  const RunIdentity* const run = start_.current();
  const ViewChange* const voter = run == nullptr ? nullptr : voter_in(run->id);
  if (voter != nullptr) {
    offer.lineage = known_lineage;
    offer.view = voter->view().number();
    for (const schema::ViewMember& one : voter->view().members()) offer.voters.push_back(one.seat);
  }
  start_.offered(key, std::move(offer), known_lineage, now_ms);
}

void Membership::prepared(std::uint64_t key, const schema::Vote& vote, std::uint64_t now_ms,
                          const engine::EachName& names) {
  if (joining_.is(key) || start_.is(key)) {
    own_vote_ = vote;
    own_names_ = names;
  }
  joining_.prepared(key, vote, now_ms);
  start_.prepared(key, vote, now_ms, names);
  follow(now_ms);
}

void Membership::prepares(Seat seat, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(seat), seat.index());
  start_.prepares(seat, now_ms);
}

void Membership::frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                       std::uint64_t now_ms) {
  if (!peers_.is_other(from)) return;
  if (is_of_a_change(body)) {
    if (ViewChange* const change = change_of(header.run))
      change->frame(from, header, body, now_ms);
    else
      end_.asked(from, header.run);
  } else if (is_of_a_join(body)) {
    join_frame(from, header, body, now_ms);
  } else {
    run_frame(from, header, body, now_ms);
  }
  follow(now_ms);
}

void Membership::join_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                            std::uint64_t now_ms) {
  const std::uint64_t key = header.run;
  if (const auto* join = std::get_if<schema::Join>(&body)) {
    if (change_ && end_.runs() && end_.run().id == join->run_id) admission_->on(from, *join, *change_, stops(), now_ms);
    return;
  }
  if (const auto* invite = std::get_if<schema::Invite>(&body)) {
    if (!idle() && !joining_.prepares()) return;
    joining_.on(from, key, *invite, now_ms);
    if (ViewChange* const change = joining_.is(key) ? change_of(key) : nullptr) change->learn(invite->view, now_ms);
    return;
  }
  if (const auto* hold = std::get_if<schema::Hold>(&body)) joining_.on(from, key, *hold, now_ms);
  if (const auto* feed = std::get_if<schema::Feed>(&body)) joining_.on(from, key, header.view, *feed, now_ms);
  if (!change_ || !end_.is(key)) return;
  if (header.view != end_.view().number()) return speaks(from, key, header.view, now_ms);
  if (const auto* hold = std::get_if<schema::Hold>(&body); hold && from == end_.view().by_seniority().front()) {
    held_ = !hold->over;
    if (held_ && stop_asked_) end_hold(peers_.own_name() + " was told to stop the run");
    const bool leaves = held_ && ask_to_leave_ms_ && Seat(hold->seat) == peers_.self();
    if (leaves && !change_->in_change()) change_->leave(words_of_leaving(), now_ms);
    hold->over ? out_.emit(GoOn{key, hold->why}) : out_.emit(NoteHold{key, hold->why});
  }
  if (const auto* hold = std::get_if<schema::Hold>(&body); hold && hold->over && end_.view().has(from))
    admission_->end(*change_, hold->why);
  if (const auto* leave = std::get_if<schema::Leave>(&body)) admission_->on(from, *leave, *change_, stops(), now_ms);
  if (const auto* want = std::get_if<schema::Want>(&body)) admission_->on(from, *want, now_ms);
  if (const auto* fed = std::get_if<schema::Fed>(&body)) admission_->on(from, *fed, *change_, now_ms);
}

void Membership::is_on(const std::string& run_id, std::uint64_t now_ms) {
  if (shut_down_ || end_.active() || start_.current() != nullptr) return;
  joining_.is_on(run_id, now_ms);
}

void Membership::held(std::uint64_t key, std::uint64_t now_ms) {
  if (!change_ || !end_.is(key)) return;
  admission_->held(*change_, now_ms);
  if (admission_->parts(peers_.self()) && ask_to_leave_ms_ && !change_->in_change())
    change_->leave(words_of_leaving(), now_ms);
  follow(now_ms);
}

void Membership::feeds(std::uint64_t key, schema::Feed feed, std::uint64_t now_ms) {
  if (change_ && end_.is(key)) admission_->feeds(std::move(feed), *change_, now_ms);
}

void Membership::fed(std::uint64_t key, const std::string& why, std::uint64_t now_ms) {
  if (!why.empty()) return joining_.failed(key, why, now_ms);
  const schema::NextView view = joining_.view();
  if (!joining_.fed(key, now_ms)) return;
  PastVoter& voter = voters_[key];
  if (!voter.change) {
    voter.run_id = joining_.run().id;
    voter.change = std::make_unique<ViewChange>(peers_, out_, self_, VoterState{key, view, {}, {}, {}}, false);
  }
  if (voter.change->view().number() != view.number) return not_joined(now_ms);
  voter.change->be_fed(joining_.state().step);
  follow(now_ms);
}

void Membership::run_frame(Seat from, const schema::FrameHeader& header, const schema::FrameBody& body,
                           std::uint64_t now_ms) {
  const std::uint64_t key = header.run;
  const bool begun = end_.is(key);
  // The words about a run's end, and of who leaves it, count in any view.
  if (const auto* cause = std::get_if<schema::Fail>(&body)) {
    start_.on_fail(from, key, *cause);
    if (begun) end_.on_fail(from, *cause);
  }
  if (std::holds_alternative<schema::Goodbye>(body)) {
    start_.on_goodbye(from, key);
    if (begun) costs_a_member(from, ViewChange::Loss::kLeaves, peers_.name(from) + " was shut down", now_ms);
  }
  // Of a run that is about to begin: its begin is on its way, or the reservation falls with a timeout.
  if (const auto* ended = std::get_if<schema::Ended>(&body); ended && !start_.is(key)) {
    end_.on_ended(from, key, *ended, now_ms);
    if (joining_.is(key) && schema::is_final(ended->state)) joining_.drop();
    // Of a time before it came in again: no news.
    if (begun && ended->state == schema::RunState::kInterrupted && header.view >= end_.view().since(from))
      costs_a_member(from, ViewChange::Loss::kLeaves, ended->reason, now_ms);
  }
  if (header.view != view_number(key)) return speaks(from, key, header.view, now_ms);
  if (const auto* claim = std::get_if<schema::Claim>(&body)) {
    if (joining_.prepares())
      out_.send({from}, key, View::kFirst, schema::Grant{false, "run " + joining_.run().id + " is on"});
    else
      start_.on_claim(from, key, *claim, now_ms);
  }
  if (const auto* grant = std::get_if<schema::Grant>(&body)) start_.on_grant(from, key, *grant, now_ms);
  if (const auto* proposal = std::get_if<schema::Propose>(&body); proposal && !begun) {
    joining_.drop();  // what it was about to come into is over
    start_.on_propose(from, key, *proposal, now_ms);
  }
  if (const auto* offer = std::get_if<schema::Offer>(&body)) start_.on_offer(from, key, *offer, now_ms);
  if (const auto* vote = std::get_if<schema::Vote>(&body)) start_.on_vote(from, key, *vote);
  if (const auto* verdict = std::get_if<schema::Commit>(&body); verdict && !begun)
    start_.on_commit(from, key, *verdict);
}

void Membership::speaks(Seat from, std::uint64_t key, std::uint32_t view, std::uint64_t now_ms) {
  if (!peers_.is_other(from)) return;
  if (ViewChange* const change = change_of(key)) change->speaks(from, view, now_ms);
}

void Membership::beats(Seat from, const std::string& run_id, std::uint32_t lineage, std::uint32_t view,
                       std::uint64_t now_ms) {
  if (change_ && end_.run().id == run_id) {
    const std::uint32_t own = end_.run().lineage();
    if (lineage == own) return speaks(from, end_.run().key, view, now_ms);
    if (lineage < own || paused().empty()) return;
    end_.interrupted(Cause::kLeftOut, peers_.own_name() + " was left out: the run was taken up again without it");
    return follow(now_ms);
  }
  for (const auto& [key, voter] : voters_)
    if (voter.run_id == run_id) return speaks(from, key, view, now_ms);
}

void Membership::stands(std::uint64_t key, const Standing& standing, std::uint64_t now_ms) {
  if (ViewChange* const change = change_of(key)) change->stands(standing, now_ms);
  follow(now_ms);
}

void Membership::voted(std::uint64_t key, bool ok, std::uint64_t now_ms) {
  if (ViewChange* const change = change_of(key)) change->voted(ok, now_ms);
  follow(now_ms);
}

void Membership::lost(Seat peer, const std::string& message, std::uint64_t now_ms) {
  TG_CHECK(peers_.knows(peer), peer.index());
  start_.lost(peer, message);
  if (peer != peers_.self())
    costs_a_member(peer, ViewChange::Loss::kNotHeard, message, now_ms);
  else if (change_)
    change_->unfit(message, now_ms);
  follow(now_ms);
}

Status Membership::stop(const std::string& run_id, std::uint64_t now_ms) {
  if (idle() || current()->id != run_id)
    return Error{ErrorKind::kNotFound, "no run " + run_id + " is in progress on " + peers_.own_name()};
  if (joining_.prepares())
    return Error{ErrorKind::kRefused,
                 peers_.own_name() + " is about to come into run " + run_id + "; ask one of its members"};
  if (!paused().empty()) {
    end_.interrupted(Cause::kStopWhilePaused,
                     (change_->step() ? "left at step " + std::to_string(*change_->step()) : "left") +
                         ": it was stopped here while it was PAUSED");
    follow(now_ms);
  } else if (end_.active()) {
    end_.stop();
    stop_asked_ = true;
    end_hold(peers_.own_name() + " was told to stop the run");
  } else {
    start_.stop(now_ms);
  }
  return {};
}

Status Membership::leave(std::uint64_t now_ms) {
  const auto refused = [](std::string why) { return Error{ErrorKind::kRefused, std::move(why)}; };
  if (!change_ || !end_.runs())
    return refused(peers_.own_name() + (idle() ? " is in no run" : " has not begun run " + current()->id + " yet"));
  const std::string& run = end_.run().id;
  if (!paused().empty())
    return refused("run " + run + " is PAUSED and may need this node; tgctl stop " + run +
                   " interrupts it and keeps its state");
  if (stops()) return refused("run " + run + " is about to end");
  if (end_.view().size() == 1)
    return refused(peers_.own_name() + " is the only member of run " + run + "; tgctl stop " + run + " ends it");
  ask_to_leave_ms_ = now_ms;
  ask_to_leave(now_ms);
  return {};
}

// Nobody waits for a newcomer any more. The most senior member ends the hold.
void Membership::end_hold(const std::string& why) {
  if (!change_ || !end_.runs()) return;
  const Seat senior = end_.view().by_seniority().front();
  if (senior == peers_.self()) return admission_->end(*change_, why);
  if (!held_) return;
  const auto self = static_cast<std::uint32_t>(peers_.self().index());
  out_.send({senior}, end_.run().key, end_.view().number(), schema::Hold{.seat = self, .over = true, .why = why});
}

void Membership::stays_out() { joining_.drop(); }

void Membership::ask_to_leave(std::uint64_t now_ms) {
  if (!ask_to_leave_ms_) return;
  if (end_.view().size() == 1) return ask_to_leave_ms_.reset();  // it stays: nobody else is left
  const bool needed = !paused().empty();                         // it may be the only one that can go on
  if (needed && !shut_down_) change_->stay();
  if (now_ms < *ask_to_leave_ms_ || change_->in_change()) return;
  ask_to_leave_ms_ = now_ms + ViewChange::kAgainMs;
  const Seat senior = end_.view().by_seniority().front();
  if (senior != peers_.self()) return out_.send({senior}, end_.run().key, end_.view().number(), schema::Leave{});
  admission_->on(senior, schema::Leave{}, *change_, stops(), now_ms);
}

void Membership::failed(const schema::Fail& cause, std::uint64_t now_ms) {
  start_.failed(cause);
  if (cause.kind == ErrorKind::kRunFailed)
    end_.failed(Cause::kTraining, cause);
  else if (change_)
    change_->unfit(cause.message, now_ms);
  follow(now_ms);
}

void Membership::finished(schema::RunState state, const std::string& reason, std::uint64_t now_ms) {
  end_.finished(state, reason);
  follow(now_ms);
}

void Membership::saved(std::uint64_t key, const schema::Ended& own, std::uint64_t now_ms) {
  end_.saved(key, own, now_ms);
}

void Membership::remember(std::uint64_t key, PastRun run) { end_.aftermath().add(key, std::move(run)); }

void Membership::remember_voter(VoterState vote, std::string run_id) {
  const PastRun* const past = end_.aftermath().find(vote.key);
  if (past != nullptr && schema::is_final(past->end.truth.state)) return;
  // Of another mesh's nodes nothing can be said here.
  if (vote.view.members.empty() || !peers_.knows(Seat(vote.view.members.back().seat))) return;
  const std::uint64_t key = vote.key;
  voters_[key] = {std::move(run_id), std::make_unique<ViewChange>(peers_, out_, self_, std::move(vote), false)};
}

void Membership::stopping() { end_.stopping(); }

void Membership::peer_finished(Seat peer) {
  TG_CHECK(peers_.knows(peer), peer.index());
  end_.peer_finished(peer);
}

void Membership::shut_down(std::uint64_t now_ms) {
  if (std::exchange(shut_down_, true)) return;
  leaving_ms_ = now_ms;
  const std::uint64_t key = idle() ? 0 : current()->key;
  const bool begun = end_.active();
  start_.shut_down();
  joining_.drop();
  if (change_) {
    end_.leaves();
    change_->leaves();
    return follow(now_ms);
  }
  end_.shut_down(now_ms);
  if (!begun) out_.send(peers_.others(), key, View::kFirst, schema::Goodbye{peers_.own_name() + " was shut down"});
}

void Membership::tick(std::uint64_t now_ms) {
  start_.tick(now_ms);
  for_each_change([&](ViewChange& change) { change.tick(now_ms); });
  joining_.tick(now_ms);
  if (admission_) admission_->tick(*change_, now_ms);
  ask_to_leave(now_ms);
  end_.tick(now_ms);
  follow(now_ms);
}

}  // namespace tg::daemon

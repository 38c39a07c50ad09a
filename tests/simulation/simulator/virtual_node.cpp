#include "tests/simulation/simulator/virtual_node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/base/check.h"

namespace tg::simulation {
namespace {

constexpr std::uint64_t kBeatTicks = 5;

daemon::MembershipOptions membership_options(const NodeOptions& options, std::uint64_t incarnation) {
  daemon::MembershipOptions made{.names = options.names, .self = options.self};
  made.directory = options.disk->directory;
  made.incarnation = incarnation;
  made.peer_timeout_ms = options.peer_timeout_ms;
  made.claim_timeout_ms = options.claim_timeout_ms;
  made.prepare_timeout_ms = options.prepare_timeout_ms;
  return made;
}

}  // namespace

VirtualNode::VirtualNode(Network& network, NodeOptions options)
    : network_(network),
      options_(std::move(options)),
      membership_(membership_options(options_, network.random().word())),
      liveness_({options_.names, options_.self, options_.peer_timeout_ms}) {
  for (auto& [key, record] : options_.disk->runs) {
    const std::size_t nodes = options_.names.size();
    schema::Ended own = record.end.truth;
    if (!record.ended) {
      own = schema::Ended{};
      own.state = schema::RunState::kInterrupted;
      own.reason = options_.names[options_.self] + " ended unexpectedly";
      own.since_ms = static_cast<std::int64_t>(network_.now_ms());
      own.save = schema::SaveState::kNothing;
    }
    daemon::PastRun run{record.id, Per<Seat, bool>(nodes, true), {own, {}}};
    run.end.members.assign(nodes, std::nullopt);
    run.end.members[options_.self] = own;
    record.ended = true;
    record.end = run.end;
    ids_[key] = record.id;
    const auto vote = options_.disk->votes.find(key);
    run.known = record.known;
    membership_.add_past_run(key, std::move(run));
    if (vote != options_.disk->votes.end()) membership_.add_past_voter(vote->second, record.id, record.lineage);
  }
}

std::vector<Seat> VirtualNode::others() const {
  std::vector<Seat> seats;
  for (const Seat seat : options_.names.places())
    if (seat != options_.self) seats.push_back(seat);
  return seats;
}

std::optional<std::uint64_t> VirtualNode::running_key() const {
  return running_ ? std::optional(running_->run_key) : std::nullopt;
}

// --- what happens to it ---

void VirtualNode::start(std::uint64_t token, const daemon::RunIdentity& run) {
  membership_.start(token, run, network_.now_ms());
  apply_actions();
}

Status VirtualNode::stop(const std::string& run_id) {
  Status status = membership_.stop(run_id, network_.now_ms());
  apply_actions();
  return status;
}

Status VirtualNode::leave() {
  Status status = membership_.leave(network_.now_ms());
  apply_actions();
  return status;
}

void VirtualNode::shut_down() {
  leaving_ = true;
  membership_.shut_down(network_.now_ms());
  apply_actions();
}

void VirtualNode::lose(Seat peer, const std::string& message) {
  membership_.on_peer_lost(peer, message, network_.now_ms());
  apply_actions();
}

void VirtualNode::on_frame(Seat from, const SharedMessage& message) {
  liveness_.on_data(from, network_.now_ms());
  if (stuck_) return;
  const bool of_a_run = message->bytes || std::holds_alternative<schema::StepFrame>(message->body) ||
                        std::holds_alternative<schema::Scalers>(message->body) ||
                        std::holds_alternative<schema::Report>(message->body);
  if (!of_a_run)
    membership_.on_frame(from, message->header, message->body, network_.now_ms());
  else if (saving_)
    return apply_actions();
  else if (running_ || run_is_prepared())
    run_frame(from, message);
  else if (membership_.current() != nullptr && membership_.current()->run_key == message->header.run)
    before_run_.push_back({from, message});
  apply_actions();
}

void VirtualNode::on_connection(Seat peer, bool up) {
  if (!up) view_links_.mark_broken(peer);
  if (up && disconnect_grace_.on_reconnected(peer)) return;
  if (up || !running_)
    membership_.on_connection_changed(peer, up, network_.now_ms(), options_.links_rekey);
  else
    disconnect_grace_.on_disconnected(
        peer, options_.names[options_.self] + " lost the connection to " + options_.names[peer], network_.now_ms());
  apply_actions();
}

void VirtualNode::on_beat(Seat from, const schema::Heartbeat& beat) {
  liveness_.on_heartbeat(from, beat, network_.now_ms());
  if (stuck_ || beat.view == 0) return;
  membership_.on_heartbeat(from, beat, {lineage_, confirmed_step()}, network_.now_ms());
  if (!running_ && !leaving_ && beat.run_id != left_by_order_)
    membership_.on_run_discovered(beat.run_id, network_.now_ms());
  apply_actions();
}

void VirtualNode::on_tick() {
  const std::uint64_t now_ms = network_.now_ms();
  if (running_ && hung_) phase_ = *hung_;
  if (running_ && !hung_ && !saving_) run_tick();
  if (ticks_++ % kBeatTicks == 0) {
    const schema::Heartbeat beat{options_.names[options_.self],
                                 1,
                                 membership_.current() != nullptr ? membership_.current()->id : "",
                                 phase_,
                                 step_,
                                 progress_,
                                 running_ ? membership_.view().number() : 0,
                                 lineage_.number,
                                 lineage_.key,
                                 lineage_.line};
    for (const Seat peer : others()) network_.send_beat(options_.self, peer, beat);
    liveness_.on_heartbeat(options_.self, beat, now_ms);
  }
  if (stuck_) return;
  for (const daemon::DisconnectGrace::Disconnect& lost : disconnect_grace_.take_due(now_ms))
    membership_.on_link_lost(lost.peer, lost.message, lost.up_again, now_ms);
  for (const daemon::Suspicion& verdict : liveness_.tick(now_ms))
    membership_.on_peer_lost(verdict.seat, verdict.message, now_ms);
  membership_.tick(now_ms);
  apply_actions();
}

// --- what it does ---

void VirtualNode::send(const std::vector<Seat>& to, const SharedMessage& message) {
  for (const Seat seat : to) network_.send(options_.self, seat, message);
}

void VirtualNode::apply_actions() {
  for (auto actions = membership_.take_actions(); !actions.empty(); actions = membership_.take_actions())
    for (const daemon::MembershipAction& action : actions)
      if (!dead()) std::visit([this](const auto& one) { apply(one); }, action);
}

void VirtualNode::apply(const daemon::SendFrame& action) {
  send(action.to, std::make_shared<const Message>(Message{action.header, action.body, nullptr}));
}

void VirtualNode::apply(const daemon::ListSavedStates& action) {
  ids_[action.run.run_key] = action.run.id;
  phase_ = schema::Phase::kPrepare;
  liveness_.watch(action.run.id, options_.step_timeout_ms, network_.now_ms());
  const std::uint64_t delay_ms = network_.random().between(options_.least_prepare_ms, options_.most_prepare_ms);
  network_.after(options_.self, delay_ms * 1000, [this, run = action.run] {
    if (stuck_) return;
    schema::Offer offer;
    offer.states = options_.disk->states[run.id];
    membership_.on_offer(run.run_key, offer, options_.disk->lineage_of(run.id), network_.now_ms());
    apply_actions();
  });
}

void VirtualNode::apply(const daemon::PrepareRun& action) {
  ids_[action.run.run_key] = action.run.id;
  phase_ = schema::Phase::kPrepare;
  before_run_.clear();
  const std::size_t accused = action.joins ? options_.names.size() : 0;  // or none
  liveness_.watch(action.run.id, options_.step_timeout_ms, network_.now_ms(), Per<Seat, bool>(accused, false));
  const std::uint64_t delay_ms = network_.random().between(options_.least_prepare_ms, options_.most_prepare_ms);
  network_.after(options_.self, delay_ms * 1000, [this, run = action.run, view = action.view] {
    if (stuck_ || running_ || membership_.current() == nullptr || membership_.current()->run_key != run.run_key) return;
    membership_.on_prepared(run.run_key, prepare_run(run, view), network_.now_ms());
    apply_actions();
  });
}

Outcome& VirtualNode::begin(const daemon::RunIdentity& run) {
  TG_CHECK(!running_, run.id);
  if (options_.on_begin_or_end) options_.on_begin_or_end(options_.self, run.run_key, true);
  running_ = run;
  view_links_.begin_view();
  lineage_ = {run.lineage(), run.run_key};
  std::vector<Seat> known = membership_.view().seats();
  for (const auto& [key, before] : options_.disk->runs) {
    if (before.id == run.id) known.insert(known.end(), before.known.begin(), before.known.end());
    if (before.id != run.id || !run.resume || !run.resume->start) continue;
    lineage_.line = before.line;
    lineage_.line.insert(lineage_.line.begin(), {before.lineage, key, run.resume->start->step});
  }
  // A record is of the newest beginning.
  std::erase_if(options_.disk->runs, [&](const auto& record) { return record.second.id == run.id; });
  VirtualDisk::Record& record = options_.disk->runs[run.run_key];
  record.id = run.id;
  record.lineage = run.lineage();
  record.known = std::move(known);
  record.line = lineage_.line;
  Outcome& one = outcomes_[run.id];
  one = {};
  one.began = true;
  return one;
}

void VirtualNode::apply(const daemon::BeginRun& action) {
  Outcome& one = begin(action.run);
  if (action.run.resume) {
    one.from = action.run.resume->start;
    TG_CHECK(one.from);
  }
  one.exchange = action.choice.commit.exchange;
  phase_ = schema::Phase::kForward;
  step_ = 0;
  liveness_.watch(action.run.id, options_.step_timeout_ms, network_.now_ms());
  run_begins(action.choice.commit);
  for (const BeforeRun& kept : std::exchange(before_run_, {})) run_frame(kept.from, kept.message);
}

void VirtualNode::apply(const daemon::DropRun& action) {
  TG_CHECK(!running_);
  if (ids_.contains(action.run_key)) outcomes_[ids_[action.run_key]].dropped = true;
  liveness_.unwatch();
  phase_ = schema::Phase::kIdle;
}

void VirtualNode::apply(const daemon::SaveRun& action) {
  TG_CHECK(running_ && !saving_, action.id);
  saving_ = true;
  run_ends();
  phase_ = schema::Phase::kSave;
  schema::Ended own;
  own.state = action.state;
  own.reason = action.reason;
  own.since_ms = static_cast<std::int64_t>(network_.now_ms());
  own.held_step = held().step;
  own.held_digest = held().digest;
  if (schema::is_authoritative(own.state)) {
    own.step = own.held_step;
    own.digest = own.held_digest;
  }
  own.save = options_.disk->full ? schema::SaveState::kNotSaved : schema::SaveState::kSaved;
  own.problem = options_.disk->full ? "no space" : "";
  const std::uint64_t delay_ms = network_.random().between(options_.least_save_ms, options_.most_save_ms);
  network_.after(options_.self, delay_ms * 1000, [this, key = action.run_key, own] {
    VirtualDisk::Record& record = options_.disk->runs[key];
    record.ended = true;
    record.end = {own, {}};
    ++progress_;
    membership_.on_saved(key, own, network_.now_ms());
    apply_actions();
  });
}

void VirtualNode::apply(const daemon::RecordEnd& action) {
  const auto found = options_.disk->runs.find(action.run_key);
  if (found == options_.disk->runs.end()) return;  // it has a vote alone
  VirtualDisk::Record& record = found->second;
  record.end = action.end;
  Outcome& one = outcomes_[record.id];
  one.end = action.end.truth.state;
  one.reason = action.end.truth.reason;
  one.verdict = action.end;
  one.told.push_back(*one.end);
}

void VirtualNode::apply(const daemon::EndRun& action) {
  Outcome& one = outcomes_[action.id];
  TG_CHECK(!one.end, action.id);
  one.end = action.state;
  if (action.by_user) left_by_order_ = action.id;
  one.told.push_back(action.state);
  if (running_) {
    one.verdict = action.end;
    options_.disk->runs[action.run_key].end = action.end;
  }
  one.reason = action.reason;
  one.end_ms = network_.now_ms();
  saving_ = false;
  if (running_) {
    if (options_.on_begin_or_end) options_.on_begin_or_end(options_.self, action.run_key, false);
  }
  running_.reset();
  liveness_.unwatch();
  phase_ = schema::Phase::kIdle;
  for (const daemon::DisconnectGrace::Disconnect& lost : disconnect_grace_.take_all())
    membership_.on_link_lost(lost.peer, lost.message, lost.up_again, network_.now_ms());
}

void VirtualNode::apply(const daemon::AnswerStart& action) {
  TG_CHECK(!answers_.contains(action.token), action.token);
  answers_[action.token] = {action.run_id, action.status, network_.now_ms()};
}

void VirtualNode::apply(const daemon::RestartProposal& action) {
  daemon::RunIdentity run = action.run;
  run.run_key = network_.random().word();
  membership_.start(action.token, run, network_.now_ms());
}

void VirtualNode::apply(const daemon::RequestStop& action) {
  TG_CHECK(running_ && running_->run_key == action.run_key);
  run_asked_to_stop();
}

void VirtualNode::finish(schema::RunState state, const std::string& reason) {
  membership_.on_finished(state, reason, network_.now_ms());
  apply_actions();
}

void VirtualNode::apply(const daemon::Seal& action) {
  daemon::SealReport report{.leaving = leaving_};
  for (const Seat peer : others())
    if (network_.hear_each_other(options_.self, peer, options_.peer_timeout_ms)) report.reachable.push_back(peer);
  if (running_key() == action.run_key && !saving_) {
    const Sealed own = seal_run();
    report.has_state = true;
    report.step = own.step;
    report.unfit = own.unfit;
    report.can_undo = own.can_undo;
  }
  membership_.on_sealed(action.run_key, report, network_.now_ms());
}

void VirtualNode::apply(const daemon::WriteVote& action) {
  const daemon::VoterState& vote = action.vote;
  const bool decides = vote.promised.count == 0, accepts = vote.accepted_in == vote.promised;
  reaches(decides ? Moment::kDecide : accepts ? Moment::kAccept : Moment::kPromise);
  if (dead()) return;
  daemon::VoterState& written = options_.disk->votes[action.run_key];
  // P4: nothing that was reported is taken back.
  EXPECT_GE(vote.view.number, written.view.number) << options_.names[options_.self];
  if (vote.view.number == written.view.number) {
    EXPECT_GE(vote.promised, written.promised) << options_.names[options_.self];
    EXPECT_GE(vote.accepted_in, written.accepted_in) << options_.names[options_.self];
  }
  written = vote;
  reaches(decides ? Moment::kDecided : accepts ? Moment::kAccepted : Moment::kPromised);
  if (dead()) return;
  membership_.on_vote_written(action.run_key, "", network_.now_ms());
}

void VirtualNode::apply(const daemon::InstallView& action) {
  reaches(Moment::kInstall);
  if (dead() || running_key() != action.run_key || saving_) return;
  outcomes_[ids_[action.run_key]].views.push_back(action.next);
  std::ranges::copy(membership_.view().seats(), std::back_inserter(options_.disk->runs[action.run_key].known));
  view_links_.begin_view();
  for (const Seat seat : disconnect_grace_.disconnected()) view_links_.mark_broken(seat);
  run_changes(action.next);
  watch();
}

void VirtualNode::apply(const daemon::LeaveView& action) {
  if (running_key() == action.run_key && !saving_) run_is_left(action.next.start);
}

// --- a node joins a run ---

void VirtualNode::apply(const daemon::QuiesceRun& action) {
  if (running_key() == action.run_key && !saving_) run_quiesces();
}

void VirtualNode::apply(const daemon::ReadHistory& action) {
  reaches(Moment::kQuiesce);
  const std::uint64_t delay_us = network_.random().between(1, 20'000);
  network_.after(options_.self, delay_us, [this, key = action.run_key] {
    if (stuck_ || running_key() != key || saving_) return;
    membership_.on_snapshot_offer(key, run_offers_snapshot(), network_.now_ms());
    apply_actions();
  });
}

void VirtualNode::apply(const daemon::SendSnapshotChunks& action) {
  if (running_key() == action.run_key && !saving_) run_sends_snapshot(action.to, action.want);
}

void VirtualNode::apply(const daemon::ReleaseRun& action) {
  if (running_key() == action.run_key && !saving_) run_is_released();
}

void VirtualNode::apply(const daemon::ReceiveSnapshot& action) {
  if (!running_) run_receives_snapshot(action);
}

void VirtualNode::apply(const daemon::JoinRun& action) {
  reaches(Moment::kJoin);
  if (dead()) return;
  ids_[action.run.run_key] = action.run.id;
  Outcome& one = begin(action.run);
  one.joined = true;
  one.views.push_back(action.next);
  one.exchange = action.choice.exchange;
  run_is_joined(action.next, action.choice);
  watch();
}

// The members of the present view.
void VirtualNode::watch() {
  Per<Seat, bool> members(options_.names.size(), false);
  for (const Seat seat : membership_.view().seats()) members[seat] = true;
  liveness_.watch(running_->id, options_.step_timeout_ms, network_.now_ms(), members);
}

// --- the clockwork in the place of a run ---

void VirtualNode::run_begins(const schema::Commit&) {
  if (options_.run_ms == 0) return;
  network_.after(options_.self, options_.run_ms * 1000, [this, key = running_->run_key] {
    if (running_key() == key) finish(schema::RunState::kCompleted, "");
  });
}

void VirtualNode::run_frame(Seat from, const SharedMessage& message) {
  if (running_key() != message->header.run) return;
  if (message->header.view != membership_.view().number())
    return membership_.on_stale_view(from, message->header.run, message->header.view, network_.now_ms());
  const auto* step = std::get_if<schema::StepFrame>(&message->body);
  if (step == nullptr || (step->flags & schema::kStopAfterStep) == 0) return;
  membership_.on_stopping();
  network_.after(options_.self, 20'000, [this, key = running_->run_key] {
    if (running_key() == key) finish(schema::RunState::kStopped, "stopped by a user");
  });
}

void VirtualNode::run_asked_to_stop() {
  schema::StepFrame step;
  step.flags = schema::kStopAfterStep;
  const auto message = std::make_shared<const Message>(
      Message{schema::FrameHeader{running_->run_key, membership_.view().number(), 0}, step, nullptr});
  send(others(), message);
  run_frame(options_.self, message);
}

}  // namespace tg::simulation

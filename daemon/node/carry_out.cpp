// The node's hands: what Membership has decided is done here, on the mesh, the run, the disk and the control server.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "daemon/node/node.h"
#include "daemon/run/recorded_end.h"
#include "daemon/store/vote_file.h"
#include "kernels/base/check.h"

namespace tg::daemon {

void Node::carry_out_all() {
  take_outcome();
  for (std::vector<MembershipAction> actions = membership_.take_actions(); !actions.empty();
       actions = membership_.take_actions()) {
    for (MembershipAction& action : actions) std::visit([this](auto& one) { carry_out(one); }, action);
    take_outcome();
  }
}

void Node::take_outcome() {
  if (!run_ || !run_->goes_on()) return;
  const Member& member = run_->view().member();
  if (run_->held()) membership_.held(run_->identity().key, now_ms());
  if (member.stopping()) membership_.stopping();
  if (member.failed())
    cannot_go_on(*member.failed());
  else if (member.finished())
    membership_.finished(*member.finished(), "", now_ms());
}

// The causes that end a run for all are told as such; what fails here, or a member that is not heard, costs a member.
void Node::cannot_go_on(const schema::Fail& cause) {
  const Member& member = run_->view().member();
  if (member.frozen()) return;  // another view follows
  if (!member.unfit().empty()) return membership_.lost(context_.self.config.seat(), member.unfit(), now_ms());
  if (cause.kind != ErrorKind::kUnreachable) return membership_.failed(cause, now_ms());
  for (const Seat seat : context_.self.names.places())
    if (context_.self.names[seat] == cause.node) membership_.lost(seat, cause.message, now_ms());
}

void Node::carry_out(SendFrame& action) {
  context_.network.mesh.send(action.to, schema::encode_frame(action.header, action.body, context_.network.pool));
}

void Node::carry_out(FindStates& action) {
  if (const Result<schema::JobSpec> job = schema::parse_job(action.run.spec, "proposal"); job.ok()) {
    show(action.run, *job, schema::RunState::kStarting);
    control_.watch(action.run.id, job->step_timeout_ms);  // a member may die while it looks, too
  }
  context_.news.progress.view = 0;
  save_held();  // a state that is only in memory is one as well, once it is on the disk
  resumption_.find(action.run);
}

void Node::on(StatesFound& event) {
  const std::uint32_t lineage = resumption_.known_lineage(event.run_id);
  const std::uint64_t key = event.key;
  membership_.offered(key, resumption_.offer(std::move(event)), lineage, now_ms());
}

void Node::carry_out(PrepareRun& action) {
  Result<schema::JobSpec> job = schema::parse_job(action.run.spec, "proposal");
  Status valid = job.ok() ? schema::validate_job(*job, action.view.size()) : Status(job.error());
  if (valid.ok() && !action.run.resume && !action.joins && action.run.id != shown_id_ &&
      context_.disk.store.exists(action.run.id))
    valid = Error{ErrorKind::kRefused,
                  context_.self.config.node + " knows a run " + action.run.id + " already; choose another --id"};
  if (valid.ok()) valid = nothing_left_behind();
  std::optional<SavedStart> start;
  if (valid.ok() && action.run.resume && !action.joins) {
    Result<SavedStart> found = resumption_.start_of(action.run);
    if (found.ok())
      start = *std::move(found);
    else
      valid = found.error();
  }
  if (!valid.ok()) {
    schema::Vote refusal;
    refusal.kind = valid.error().kind;
    refusal.message = valid.error().message;
    return membership_.prepared(action.run.key, refusal, now_ms());
  }
  show(action.run, *job, schema::RunState::kStarting);
  context_.news.progress.view = 0;
  if (action.joins)
    control_.watch(action.run.id, job->step_timeout_ms, Per<Seat, bool>(context_.self.names.size(), false));
  else
    control_.watch(action.run.id, job->step_timeout_ms);  // a member may die while it prepares, too
  advisor_.give_way(context_.self.config.node + " cannot measure while a run is on; ask again when it has ended");
  examiner_.give_way("run " + action.run.id + " began");
  dry_run_.give_way({ErrorKind::kRefused, "run " + action.run.id + " begins; ask again when it has ended"});
  if (action.run.global_batch == 0)
    action.run.global_batch = start && start->record->global_batch != 0
                                  ? start->record->global_batch
                                  : schema::resolved_global_batch(*job, action.view.size());
  run_ =
      std::make_unique<Run>(context_, action.run, std::move(job).value(), action.view, std::move(start), action.joins);
}

void Node::carry_out(BeginRun& action) {
  TG_CHECK(is_current(action.run.key));
  choice_ = action.choice;
  shown_id_.clear();
  step_timeout_ms_ = begins_ms_ = 0;
  fitted_.reset();
  changed_.reset();
  view_links_.begin_view();
  voted_in_[action.run.key] = action.run.id;
  watch(action.run.id);
  log_run(action.run.id);
  if (!choice_.why.empty()) context_.news.log.info("exchange-chosen", {{"run", action.run.id}, {"why", choice_.why}});
  if (const Status begun = run_->begin(choice_.commit); !begun.ok()) {
    membership_.failed({ErrorKind::kRunFailed, context_.self.config.node, "prepare",
                        context_.self.config.node + ": " + begun.error().message},
                       now_ms());
  }
}

// The log goes into the run's folder as well.
void Node::log_run(const std::string& id) {
  const std::string directory = context_.disk.store.directory(id);
  std::error_code ignored;  // whoever writes there says what is wrong
  std::filesystem::create_directories(directory, ignored);
  context_.news.log.set_sink(
      [run_log = std::make_shared<LineWriter>(directory + "/log.txt", context_.news.log.lost_note())](
          std::string_view line) { run_log->write(std::string(line)); });
}

void Node::carry_out(DropRun& action) {
  context_.news.progress.view = 0;
  control_.unwatch();
  if (is_current(action.key)) {
    context_.news.progress.phase = schema::Phase::kIdle;
    run_.reset();
  }
  context_.disk.store.forget(std::exchange(shown_id_, ""));
}

void Node::carry_out(SaveRun& action) {
  TG_CHECK(is_current(action.key));
  if (run_->begun()) return run_->begin_save(action.state, action.reason);
  // It could not even begin.
  schema::Ended own;
  own.state = action.state;
  own.reason = action.reason;
  own.since_ms = unix_time_ms();
  own.save = schema::SaveState::kNothing;
  membership_.saved(action.key, own, now_ms());
}

void Node::carry_out(RecordEnd& action) {
  context_.disk.store.amend(action.key, [&](RunRecord& record) {
    if (record.status.state != action.end.truth.state)
      context_.news.log.info(
          "run-ended-otherwise",
          {{"run", record.id}, {"said", to_word(record.status.state)}, {"is", to_word(action.end.truth.state)}});
    record_end(record, action.end, context_.self.names);
  });
  if (run_ == nullptr) show_last_run();
}

void Node::carry_out(EndRun& action) {
  if (is_current(action.key)) tell_change(false);
  context_.news.metrics.numbers().run_state = action.state;
  const bool begun = is_current(action.key) && run_->begun();
  if (begun) not_resumed_.clear();
  std::string reason = action.reason;
  if (!begun && !schema::is_fact(action.state)) reason += absent_problems();
  const Status recorded = begun ? run_->keeper().ended(action.end) : save_unbegun(action, reason);
  if (!recorded.ok())
    context_.news.log.error("record-failed", {{"run", action.id}, {"error", recorded.error().message}});
  if (action.by_order) context_.disk.store.amend(action.key, [](RunRecord& record) { record.left_by_order = true; });
  context_.news.log.write(action.state == schema::RunState::kFailed ? LogLevel::kError : LogLevel::kInfo, "run-ended",
                          {{"run", action.id}, {"state", to_word(action.state)}, {"reason", reason}});
  if (const std::uint64_t dropped = std::exchange(dropped_frames_, 0); dropped > 0)
    context_.news.log.info("frames-dropped", {{"run", action.id}, {"of-other-runs-or-views", dropped}});
  context_.news.log.set_sink(nullptr);
  control_.unwatch();
  context_.network.mesh.forget_waiting();
  context_.news.progress.phase = schema::Phase::kIdle;
  context_.news.progress.view = 0;
  if (is_current(action.key)) run_.reset();
  shown_id_.clear();
  for (const LastWords::Gone& gone : last_words_.take_all())  // the next run has nothing to do with them
    membership_.gave_up(gone.peer, gone.message, gone.up_again, now_ms());
}

Status Node::save_unbegun(const EndRun& action, const std::string& reason) {
  RunRecord record;
  record.id = record.status.id = action.id;
  record.node = context_.self.config.node;
  record.build = context_.self.build;
  record.member_names = context_.self.names;
  record.status.state = action.state;
  record.status.reason = reason;
  record.status.since_ms = record.status.started_ms = unix_time_ms();
  return context_.disk.store.write(record);
}

void Node::carry_out(AnswerStart& action) {
  if (action.token == kNobody) {
    not_resumed_ = action.status.ok() ? "" : action.status.error().message + absent_problems();
    if (!action.status.ok()) context_.news.log.warning("auto-resume", {{"run", action.run_id}, {"why", not_resumed_}});
    return context_.disk.store.forget(action.status.ok() ? "" : action.run_id);
  }
  if (action.status.ok() && run_ && run_->identity().id == action.run_id) {
    schema::StartReply facts = run_->facts(choice_.commit);
    facts.link_mbps = choice_.link_mbps;  // of the slowest member
    control_.reply(action.token, advisor_.foresee(std::move(facts), *run_, choice_.commit));
    return;
  }
  if (action.status.ok() && action.from_step > 0 && membership_.idle()) {  // without this node, which lacks the state
    schema::StartReply facts;
    facts.run_id = action.run_id;
    facts.from_step = action.from_step;
    return control_.reply(action.token, std::move(facts));
  }
  Error error = action.status.ok() ? Error{ErrorKind::kFailed, "the run ended at once"} : action.status.error();
  if (error.kind == ErrorKind::kRunFailed || error.kind == ErrorKind::kUnreachable) error.message += absent_problems();
  if (error.kind == ErrorKind::kUnreachable) error.kind = ErrorKind::kFailed;  // a peer is; this node has answered
  context_.disk.store.forget(action.run_id);  // a start that was refused; one that FAILED has been written
  control_.reply(action.token, std::move(error));
}

void Node::carry_out(StartAnew& action) {
  action.run.key = draw();
  propose(action.token, action.run);
}

void Node::carry_out(AskStop& action) {
  if (is_current(action.key)) run_->request_stop();
}

// --- a view change ---

void Node::carry_out(Freeze& action) {
  Standing standing;
  standing.leaves = leaving_;
  const std::chrono::milliseconds silence(context_.self.config.peer_timeout_ms);
  for (const Seat seat : context_.self.names.places())
    if (seat != context_.self.config.seat() && context_.network.mesh.links().hears(seat, silence))
      standing.hears.push_back(seat);
  if (is_current(action.key) && run_->goes_on()) {
    const Run::Standing own = run_->freeze();
    standing.has_state = true;
    standing.step = own.step;
    standing.unfit = own.unfit;
    standing.goes_back = own.goes_back;
  }
  membership_.stands(action.key, standing, now_ms());
}

void Node::carry_out(WriteVote& action) {
  const auto run = voted_in_.find(action.key);
  TG_CHECK(run != voted_in_.end(), action.key);
  const VoterState& vote = action.vote;
  const FaultInjection& fault = context_.machine.fault;
  const bool decides = vote.promised.count == 0;  // the view is new, and nobody has asked about the next one
  const std::uint64_t changed = decides ? vote.view.number - 1 : vote.view.number;
  if (decides) fault.reached(schema::ChangePoint::kDecide, changed);
  const Status written = write_vote(context_.disk.store.directory(run->second), vote);
  fault.reached(decides                             ? schema::ChangePoint::kDecided
                : vote.accepted_in == vote.promised ? schema::ChangePoint::kAccept
                                                    : schema::ChangePoint::kPromise,
                changed);
  if (!written.ok()) context_.news.log.error("vote-failed", {{"run", run->second}, {"error", written.error().message}});
  membership_.voted(action.key, written.ok(), now_ms());
}

void Node::carry_out(InstallView& action) {
  if (!is_current(action.key) || !run_->goes_on()) return;
  context_.machine.fault.reached(schema::ChangePoint::kInstall, action.next.number - 1);
  const std::uint64_t now = now_ms();
  const View next(action.next);
  tell_change(false);
  changed_ = action;
  for (const Seat seat : context_.self.names.places())
    if (seat != context_.self.config.seat() && !next.has(seat)) context_.network.mesh.forget_waiting(seat);
  view_links_.begin_view();
  for (const Seat seat : last_words_.broken()) view_links_.broke(seat);
  begins_ms_ = action.next.waits ? now + ViewChange::kGraceMs : 0;
  fitted_.reset();
  run_->pause("");
  const Status goes_on = run_->change_view(next, Round(action.next.start), action.next.why);
  watch(run_->identity().id);
  if (!goes_on.ok()) membership_.lost(context_.self.config.seat(), goes_on.error().message, now);
}

// One line for each: when this node had promised, learned what was decided, and began the first step, after it had
// noticed that there was a reason.
void Node::tell_change(bool begun) {
  const std::optional<InstallView> change = std::exchange(changed_, std::nullopt);
  if (!change) return;
  const ChangeTimes& times = change->times;
  const std::uint64_t noticed_ms = times.noticed_ms > 0    ? times.noticed_ms
                                   : times.promised_ms > 0 ? times.promised_ms
                                                           : times.decided_ms;
  const auto after = [&](std::uint64_t ms) {
    return ms < noticed_ms || ms == 0 ? std::string("-") : std::to_string(ms - noticed_ms);
  };
  context_.news.log.warning("view-changed", {{"run", run_->identity().id},
                                             {"view", change->next.number},
                                             {"members", change->next.members.size()},
                                             {"from-step", change->next.start},
                                             {"why", change->next.why},
                                             {"promised-ms", after(times.promised_ms)},
                                             {"decided-ms", after(times.decided_ms)},
                                             {"rebuilt-ms", begun ? after(now_ms()) : "-"}});
}

void Node::carry_out(LeaveView& action) {
  if (!is_current(action.key) || !run_->begun()) return;
  tell_change(false);
  context_.news.log.warning("left-out",
                            {{"run", run_->identity().id}, {"view", action.next.number}, {"why", action.next.why}});
  run_->leave(Round(action.next.start));
}

// --- a node comes into a run ---

void Node::carry_out(HoldRun& action) {
  if (is_current(action.key)) run_->request_hold();
}

void Node::carry_out(ReadPast& action) {
  if (is_current(action.key)) run_->read_past();
}

void Node::carry_out(SendSlices& action) {
  if (is_current(action.key)) run_->send_slices(action.to, action.want);
}

// Who is about to come into a run shows what it waits for, too.
void Node::carry_out(NoteHold& action) {
  if (is_current(action.key) && run_->begun()) return run_->note_hold(action.what);
  if (action.what.empty() || action.what == std::exchange(joining_, action.what)) return;
  context_.news.log.info("joins", {{"what", action.what}});
  if (std::optional<RunRecord> record = context_.disk.store.find(shown_id_); record && !shown_id_.empty()) {
    record->status.reason = action.what;
    context_.disk.store.update(record->status);
  }
}

void Node::carry_out(GoOn& action) {
  if (!is_current(action.key)) return;
  if (!action.why.empty())
    context_.news.log.warning("nobody-joins", {{"run", run_->identity().id}, {"why", action.why}});
  run_->go_on();
}

void Node::carry_out(TakeFeed& action) {
  if (!is_current(action.key) || run_->begun()) return;
  log_run(run_->identity().id);
  voted_in_[action.key] = run_->identity().id;
  const Status fed = run_->be_fed(action.from, action.view, action.feed);
  if (!fed.ok()) return membership_.fed(action.key, fed.error().message, now_ms());
  run_->ask_for_slices(now_ms());
}

void Node::carry_out(JoinRun& action) {
  TG_CHECK(is_current(action.run.key));
  choice_ = {action.choice, "", 0};
  shown_id_.clear();
  step_timeout_ms_ = 0;
  begins_ms_ = action.next.waits ? now_ms() + ViewChange::kGraceMs : 0;
  fitted_.reset();
  changed_.reset();
  view_links_.begin_view();
  for (const Seat seat : last_words_.broken()) view_links_.broke(seat);
  const Status joined = run_->join(View(action.next), action.choice, action.next.why);
  if (!joined.ok()) context_.news.log.error("join-failed", {{"run", action.run.id}, {"error", joined.error().message}});
  watch(action.run.id);
  if (!joined.ok()) membership_.lost(context_.self.config.seat(), joined.error().message, now_ms());
}

// The members of the run's present view.
void Node::watch(const std::string& run) {
  const View& view = run_->view().view();
  Per<Seat, bool> members(context_.self.names.size(), false);
  for (const Seat seat : view.seats()) members[seat] = true;
  context_.news.progress.lineage = run_->identity().lineage();
  context_.news.progress.view = view.number();
  control_.watch(run, run_->view().step_timeout_ms(), members);
}

std::string Node::absent_problems() const {
  std::string text;
  for (const Seat seat : context_.self.names.places())
    if (const std::optional<LinkProblem> problem = context_.network.mesh.links().problem(seat))
      text += "; " + context_.self.names[seat] + ": " + problem->why;
  return text;
}

}  // namespace tg::daemon

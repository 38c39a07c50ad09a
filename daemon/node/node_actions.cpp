// What the node does when Membership has decided.
#include <filesystem>

#include "daemon/node/node.h"
#include "kernels/base/check.h"

namespace tg::daemon {

void Node::act() {
  for (bool more = true; more;) {
    more = take_outcome();
    for (MembershipAction& action : membership_.take_actions()) {
      more = true;
      std::visit([this](auto& one) { carry_out(one); }, action);
    }
  }
}

bool Node::take_outcome() {
  if (!run_ || !run_->begun()) return false;
  const ActiveRun::Outcome outcome = run_->outcome();
  if (outcome.stopping) membership_.stopping();
  if (outcome.failed) {
    membership_.failed(*outcome.failed, now_ms());
  } else if (outcome.finished) {
    membership_.finished(*outcome.finished, "", now_ms());
  }
  return false;
}

void Node::carry_out(SendFrame& action) {
  context_.mesh.send(action.to, schema::encode_frame(action.header, action.body, context_.pool));
}

void Node::carry_out(PrepareRun& action) {
  Result<schema::JobSpec> job = schema::parse_job(action.run.spec, "proposal");
  Status valid = job.ok() ? schema::validate_job(*job, context_.names.size()) : Status(job.error());
  if (valid.ok() && action.run.id != shown_id_ && context_.store.exists(action.run.id))
    valid = Error{ErrorKind::kRefused,
                  context_.config.node + " knows a run " + action.run.id + " already; choose another --id"};
  if (valid.ok()) {
    show(action.run, *job, schema::RunState::kStarting);
    control_.watch(action.run.id, job->step_timeout_ms);  // a member may die while it prepares, too
    advisor_.give_way();
    run_ = std::make_unique<ActiveRun>(context_, action.run, std::move(job).value());
    return;
  }
  schema::Vote refusal;
  refusal.kind = valid.error().kind;
  refusal.message = valid.error().message;
  membership_.prepared(action.run.key, refusal, now_ms());
}

void Node::carry_out(BeginRun& action) {
  TG_CHECK(is_current(action.run.key));
  choice_ = action.choice;
  shown_id_.clear();
  step_timeout_ms_ = 0;
  control_.watch(action.run.id, run_->step_timeout_ms());
  const std::string directory = context_.store.directory(action.run.id);
  std::error_code ignored;  // begin() writes there and says what is wrong
  std::filesystem::create_directories(directory, ignored);
  run_log_.open(directory + "/log.txt", std::ios::app);
  context_.log.set_sink([this](std::string_view line) { run_log_ << line << '\n' << std::flush; });
  if (!action.why.empty()) context_.log.info("exchange-chosen", {{"run", action.run.id}, {"why", action.why}});
  if (const Status begun = run_->begin(action.choice); !begun.ok()) {
    membership_.failed(
        {begun.error().kind, context_.config.node, "prepare", context_.config.node + ": " + begun.error().message},
        now_ms());
  }
}

void Node::carry_out(DropRun& action) {
  if (is_current(action.key)) {
    control_.unwatch();
    context_.progress.phase = schema::Phase::kIdle;
    run_.reset();
  }
  context_.store.forget(std::exchange(shown_id_, ""));
}

void Node::carry_out(EndRun& action) {
  std::string reason = action.reason;
  Status saved;
  if (is_current(action.key) && run_->begun()) {
    saved = run_->save(action.state, reason);
  } else {
    if (action.state == schema::RunState::kFailed) reason += absent_problems();
    RunRecord record;
    record.id = action.id;
    record.node = context_.config.node;
    record.build = context_.build;
    record.member_names = context_.names;
    record.status.id = action.id;
    record.status.state = action.state;
    record.status.reason = reason;
    record.status.since_ms = record.status.started_ms = unix_time_ms();
    saved = context_.store.write(record);
  }
  if (!saved.ok()) context_.log.error("save-failed", {{"run", action.id}, {"error", saved.error().message}});
  context_.log.write(action.state == schema::RunState::kFailed ? LogLevel::kError : LogLevel::kInfo, "run-ended",
                     {{"run", action.id}, {"state", schema::run_state_name(action.state)}, {"reason", reason}});
  context_.log.set_sink(nullptr);
  run_log_.close();
  control_.unwatch();
  context_.mesh.forget_waiting();
  context_.progress.phase = schema::Phase::kIdle;
  if (is_current(action.key)) run_.reset();
  shown_id_.clear();
  for (const auto& [peer, broken] : std::exchange(broken_, {})) {  // the next run has nothing to do with them
    membership_.connection(peer, false, now_ms());
    if (broken.up_again) membership_.connection(peer, true, now_ms());
  }
}

void Node::carry_out(AnswerStart& action) {
  if (action.status.ok() && run_ && run_->identity().id == action.run_id) {
    control_.reply(action.token, advisor_.foresee(run_->plan_reply(choice_), run_->job(), choice_));
    return;
  }
  Error error = action.status.ok() ? Error{ErrorKind::kFailed, "the run ended at once"} : action.status.error();
  if (error.kind == ErrorKind::kRunFailed || error.kind == ErrorKind::kUnreachable) error.message += absent_problems();
  if (error.kind == ErrorKind::kUnreachable) error.kind = ErrorKind::kFailed;  // a peer is; this node has answered
  context_.store.forget(action.run_id);  // a start that was refused; one that FAILED has been written
  control_.reply(action.token, std::move(error));
}

void Node::carry_out(AskStop& action) {
  if (is_current(action.key)) run_->request_stop();
}

std::string Node::absent_problems() const {
  std::string text;
  for (Rank r = 0; r < context_.names.size(); ++r)
    if (const std::string problem = context_.mesh.problem(r); !problem.empty()) text += "; " + problem;
  return text;
}

}  // namespace tg::daemon

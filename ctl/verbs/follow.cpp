#include "ctl/verbs/follow.h"

#include <utility>

#include "ctl/format/status_text.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

constexpr int kFollowPollMs = 500;
constexpr std::int64_t kQuietMs = 1000, kCountEveryMs = 10'000;
constexpr int kWithdrawMs = 5000, kWithdrawPollMs = 100;

int ended(const schema::RunStatus& run) {
  if (run.state == schema::RunState::kFailed) {
    say("run " + run.id + " FAILED at step " + std::to_string(run.step) + ": " +
        (run.reason.empty() ? "no reason was recorded" : run.reason));
    return kRunFailed;
  }
  if (run.state == schema::RunState::kInterrupted) {
    say(interrupted_text(run));
    return kRunInterrupted;
  }
  say("run " + run.id + " " + std::string(to_word(run.state)) + (run.reason.empty() ? "" : ": " + run.reason));
  say("tgctl fetch " + run.id + " -o DIR gets the model");
  return run.saved_by_all() ? kOk : kNotSaved;
}

int detached(const std::string& id) {
  say("detached; run " + id + " continues");
  say("tgctl status " + id + " shows it");
  say("tgctl stop " + id + " ends it");
  return kInterrupted;
}

}  // namespace

int withdraw(Client& client, const std::string& id) {
  forget_interrupt();
  const Result<schema::StopReply> told = client.ask_for<schema::StopReply>(schema::StopRequest{id});
  if (!told && told.error().kind != ErrorKind::kNotFound) {
    say("interrupted; run " + id + " may still begin: " + told.error().message + ". tgctl stop " + id + " ends it");
    return kInterrupted;
  }
  for (int waited_ms = 0; waited_ms < kWithdrawMs; waited_ms += kWithdrawPollMs) {
    const Result<schema::RunStatus> run = ask_run(client, id);
    const bool gone = !run && run.error().kind == ErrorKind::kNotFound;
    if (gone || (run && schema::has_ended(run->state))) {
      const bool began = run && run->state == schema::RunState::kStopped && run->step > 0;
      say("interrupted; run " + id +
          (began ? " was stopped at step " + std::to_string(run->step) : " was stopped before it began"));
      return kInterrupted;
    }
    if (!run || !sleep_unless_interrupted(kWithdrawPollMs)) break;
  }
  say("interrupted; run " + id + " was told to stop, and tgctl status " + id + " shows whether it has");
  return kInterrupted;
}

bool Talk::preparing(const schema::ReplyBody& reply) {
  const auto* mesh = std::get_if<schema::MeshStatus>(&reply);
  if (mesh == nullptr || mesh->runs.size() != 1 || mesh->runs[0].state > schema::RunState::kStarting) return false;
  const schema::RunStatus& run = mesh->runs[0];
  const std::int64_t now_ms = unix_time_ms();
  // Most starts are over by then.
  if (run.state == schema::RunState::kStarting && now_ms - began_ms_ < kQuietMs) return true;
  if (terminal_) {
    live_.show(preparing_line(*mesh, run, now_ms, columns()));
    return true;
  }
  constexpr std::size_t kWhole = schema::kMaxReasonBytes;
  if (run.state == schema::RunState::kStarting && !run.reason.empty() && !count_due(now_ms)) return true;
  if (std::string said = preparing_line(*mesh, run, 0, kWhole); said != std::exchange(said_, said))
    say(preparing_line(*mesh, run, now_ms, kWhole));
  return true;
}

bool Talk::looking(const schema::ReplyBody& reply, const char* asked) {
  const auto* mesh = std::get_if<schema::MeshStatus>(&reply);
  bool at_work = false;
  if (mesh == nullptr) return at_work;
  const std::int64_t now_ms = unix_time_ms();
  for (const schema::NodeStatus& node : mesh->nodes) {
    if (node.name != mesh->node || node.problem.empty()) continue;
    at_work = node.problem != std::exchange(said_, node.problem);
    if (terminal_ || count_due(now_ms))
      terminal_ ? live_.show(looking_line(asked, node.problem, began_ms_, now_ms, columns()))
                : say(looking_line(asked, node.problem, began_ms_, now_ms, columns()));
  }
  return at_work;
}

bool Talk::count_due(std::int64_t now_ms) {
  if (now_ms < next_count_ms_) return false;
  next_count_ms_ = now_ms + kCountEveryMs;
  return true;
}

void Talk::running(const schema::RunStatus& run) {
  const std::int64_t now_ms = unix_time_ms();
  if (const std::string news = news_.update(run); !news.empty()) {
    live_.end();
    say(news);
  }
  tell(run, now_ms, progress_.update(run, now_ms, columns()));
}

void Talk::tell(const schema::RunStatus& run, std::int64_t now_ms, const std::string& line) {
  if (terminal_) {
    live_.show(line);
  } else if (pace_.due(run, now_ms)) {
    say(line);
  }
}

int follow(Client& client, const std::string& id, Talk& talk) {
  while (true) {
    const Result<schema::RunStatus> run = ask_run_again(client, id);
    if (interrupted()) {
      talk.end();
      return detached(id);
    }
    if (!run) {
      talk.end();
      return fail(run.error());
    }
    talk.running(*run);
    if (schema::has_ended(run->state)) {
      talk.end();
      return ended(*run);
    }
    if (!sleep_unless_interrupted(kFollowPollMs)) {
      talk.end();
      return detached(id);
    }
  }
}

}  // namespace tg::ctl

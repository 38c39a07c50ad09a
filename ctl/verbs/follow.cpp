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
    print_note("run " + run.id + " FAILED at step " + std::to_string(run.step) + ": " +
               (run.reason.empty() ? "no reason was recorded" : run.reason));
    return kRunFailed;
  }
  if (run.state == schema::RunState::kInterrupted) {
    print_note(interrupted_text(run));
    return kRunInterrupted;
  }
  print_note("run " + run.id + " " + std::string(to_word(run.state)) + (run.reason.empty() ? "" : ": " + run.reason));
  print_note("tgctl fetch " + run.id + " -o DIR gets the model");
  return run.saved_by_all() ? kOk : kNotSaved;
}

int detached(const std::string& id) {
  print_note("detached; run " + id + " continues");
  print_note("tgctl status " + id + " shows it");
  print_note("tgctl stop " + id + " ends it");
  return kInterrupted;
}

}  // namespace

int withdraw(Client& client, const std::string& id, const std::string& node) {
  clear_interrupt();
  const Result<schema::StopReply> told = client.ask_for<schema::StopReply>(schema::StopRequest{id, node});
  if (!told && told.error().kind != ErrorKind::kNotFound) {
    print_note("interrupted; run " + id + " may still begin: " + told.error().message + ". tgctl stop " + id +
               " ends it");
    return kInterrupted;
  }
  for (int waited_ms = 0; waited_ms < kWithdrawMs; waited_ms += kWithdrawPollMs) {
    const Result<schema::RunStatus> run = ask_run(client, id);
    const bool gone = !run && run.error().kind == ErrorKind::kNotFound;
    if (gone || (run && schema::has_ended(run->state))) {
      const bool began = run && run->state == schema::RunState::kStopped && run->step > 0;
      print_note("interrupted; run " + id +
                 (began ? " was stopped at step " + std::to_string(run->step) : " was stopped before it began"));
      return kInterrupted;
    }
    if (!run || !sleep_unless_interrupted(kWithdrawPollMs)) break;
  }
  print_note("interrupted; run " + id + " was asked to stop; tgctl status " + id + " shows whether it has");
  return kInterrupted;
}

bool ProgressPrinter::print_preparing(const schema::ReplyBody& reply) {
  const auto* mesh = std::get_if<schema::MeshStatus>(&reply);
  if (mesh == nullptr || mesh->runs.size() != 1 || mesh->runs[0].state > schema::RunState::kStarting) return false;
  const schema::RunStatus& run = mesh->runs[0];
  const std::int64_t now_ms = unix_time_ms();
  // Most starts end before that time.
  if (run.state == schema::RunState::kStarting && now_ms - began_ms_ < kQuietMs) return true;
  if (terminal_) {
    live_.show(preparing_line(*mesh, run, now_ms, columns()));
    return true;
  }
  constexpr std::size_t kWhole = schema::kMaxReasonBytes;
  if (run.state == schema::RunState::kStarting && !run.reason.empty() && !count_due(now_ms)) return true;
  if (std::string said = preparing_line(*mesh, run, 0, kWhole); said != std::exchange(last_text_, said))
    print_note(preparing_line(*mesh, run, now_ms, kWhole));
  return true;
}

bool ProgressPrinter::print_activity(const schema::ReplyBody& reply, const char* asked) {
  const auto* mesh = std::get_if<schema::MeshStatus>(&reply);
  bool at_work = false;
  if (mesh == nullptr) return at_work;
  const std::int64_t now_ms = unix_time_ms();
  for (const schema::NodeStatus& node : mesh->nodes) {
    if (node.name != mesh->node || node.problem.empty()) continue;
    at_work = node.problem != std::exchange(last_text_, node.problem);
    if (terminal_ || count_due(now_ms))
      terminal_ ? live_.show(activity_line(asked, node.problem, began_ms_, now_ms, columns()))
                : print_note(activity_line(asked, node.problem, began_ms_, now_ms, columns()));
  }
  return at_work;
}

bool ProgressPrinter::count_due(std::int64_t now_ms) {
  if (now_ms < next_count_ms_) return false;
  next_count_ms_ = now_ms + kCountEveryMs;
  return true;
}

void ProgressPrinter::print_running(const schema::RunStatus& run) {
  const std::int64_t now_ms = unix_time_ms();
  if (const std::string notices = notices_.update(run); !notices.empty()) {
    live_.end();
    print_note(notices);
  }
  print_line(run, now_ms, progress_.update(run, now_ms, columns()));
}

void ProgressPrinter::print_line(const schema::RunStatus& run, std::int64_t now_ms, const std::string& line) {
  if (terminal_) {
    live_.show(line);
  } else if (throttle_.due(run, now_ms)) {
    print_note(line);
  }
}

int follow(Client& client, const std::string& id, ProgressPrinter& printer) {
  while (true) {
    const Result<schema::RunStatus> run = poll_run(client, id);
    if (interrupted()) {
      printer.end();
      return detached(id);
    }
    if (!run) {
      printer.end();
      return fail(run.error());
    }
    printer.print_running(*run);
    if (schema::has_ended(run->state)) {
      printer.end();
      return ended(*run);
    }
    if (!sleep_unless_interrupted(kFollowPollMs)) {
      printer.end();
      return detached(id);
    }
  }
}

}  // namespace tg::ctl

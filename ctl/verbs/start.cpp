#include <cerrno>
#include <cstring>
#include <fstream>

#include "ctl/format/progress.h"
#include "ctl/format/status_text.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/log.h"
#include "schema/limits.h"

namespace tg::ctl {
namespace {

constexpr int kPollMs = 500;
constexpr int kPreparationMs = 120'000;  // beyond start-timeout: loading data, building engines, measuring a step
constexpr int kMostSilentPolls = 3;      // each of kControlReplyMs

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const Error unreadable{ErrorKind::kInvalidJob, path + " cannot be read: " + std::strerror(errno)};
  if (!file) return unreadable;
  std::string text(schema::kMostSpecBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return Error{ErrorKind::kInvalidJob, path + " cannot be read; is it a file?"};
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

int ended(const schema::RunStatus& run) {
  if (run.state == schema::RunState::kFailed) {
    say("run " + run.id + " FAILED at step " + std::to_string(run.step) + ": " +
        (run.reason.empty() ? "no reason was recorded" : run.reason));
    return kRunFailed;
  }
  say("run " + run.id + " " + std::string(to_word(run.state)) + (run.reason.empty() ? "" : ": " + run.reason) +
      "; tgctl fetch " + run.id + " -o DIR gets the model");
  return run.saved_by_all() ? kOk : kNotSaved;
}

int detached(const std::string& id) {
  say("detached; run " + id + " goes on. tgctl status " + id + " shows it, tgctl stop " + id + " ends it");
  return kInterrupted;
}

int follow(Client& client, const std::string& id) {
  ProgressLine progress;
  PlainPace pace;
  LiveLine live;
  const bool terminal = LiveLine::possible();
  int silent_polls = 0;
  while (true) {
    const Result<schema::RunStatus> run = ask_run(client, id);
    if (interrupted()) {
      live.end();
      return detached(id);
    }
    if (!run) {
      // One lost answer is no reason to leave a run that goes on.
      if (run.error().kind == ErrorKind::kUnreachable && ++silent_polls < kMostSilentPolls) continue;
      live.end();
      return fail(run.error());
    }
    silent_polls = 0;
    const std::int64_t now_ms = unix_time_ms();
    const std::string line = progress.update(*run, now_ms);
    if (terminal) {
      live.show(line);
    } else if (pace.due(*run, now_ms)) {
      say(line);
    }
    if (schema::is_final(run->state)) {
      live.end();
      return ended(*run);
    }
    if (!sleep_unless_interrupted(kPollMs)) {
      live.end();
      return detached(id);
    }
  }
}

}  // namespace

Result<schema::JobSpec> read_job(const Command& command) {
  const Result<std::string> text = read_text(command.operand);
  if (!text) return text.error();
  Result<schema::JobSpec> job = schema::parse_job(*text, command.operand);
  if (!job) return job;
  for (const std::string& setting : command.settings) {
    const Status status = schema::set_job_key(*job, setting);
    if (!status) return Error{status.error().kind, "--set " + setting + ": " + status.error().message};
  }
  if (const Status status = schema::validate_job(*job, 0); !status) return status.error();
  return job;
}

int start(Client& client, const Command& command, const schema::JobSpec& job) {
  const int timeout_ms = static_cast<int>(job.start_timeout_ms) + kPreparationMs;
  const Result<schema::StartReply> plan = Client::as<schema::StartReply>(
      client.ask_patiently(schema::StartRequest{schema::canonical_job(job), command.id, command.dry_run}, timeout_ms));
  if (interrupted()) {
    say("detached before the node answered; the run may start or not: tgctl list shows it");
    return kInterrupted;
  }
  if (!plan) return fail(plan.error());
  // A replayed run computes nothing that more nodes could make faster.
  const std::optional<std::string> warning =
      job.compute == schema::Compute::kTrain ? speed_up_warning(*plan) : std::nullopt;
  if (command.dry_run) {
    print(format_plan(*plan));
    if (warning) warn(*warning);
    return kOk;
  }
  print(plan->run_id + "\n");
  if (warning) warn(*warning);
  return command.detach ? static_cast<int>(kOk) : follow(client, plan->run_id);
}

}  // namespace tg::ctl

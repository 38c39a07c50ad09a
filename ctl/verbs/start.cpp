#include <random>
#include <utility>

#include "ctl/format/progress.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/log.h"
#include "schema/limits.h"
#include "schema/run_id.h"

namespace tg::ctl {
namespace {

constexpr int kPollMs = 500;
constexpr std::int64_t kQuietMs = 1000, kCountEveryMs = 10'000;
constexpr const char* kNoRun = "no-run";  // asks a node about itself, and for no run's status
constexpr int kPreparationMs = 120'000;   // beyond start-timeout: loading data, building engines, measuring a step
constexpr int kMostSilentPolls = 3;       // each of kControlReplyMs
constexpr int kWithdrawMs = 5000, kWithdrawPollMs = 100;

int ended(const schema::RunStatus& run) {
  if (run.state == schema::RunState::kFailed) {
    say("run " + run.id + " FAILED at step " + std::to_string(run.step) + ": " +
        (run.reason.empty() ? "no reason was recorded" : run.reason));
    return kRunFailed;
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

// Ctrl-C before the node has answered: the run is not wanted any more.
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
    if (gone || (run && schema::is_final(run->state))) {
      say("interrupted; run " + id +
          (run && run->step > 0 ? " was stopped at step " + std::to_string(run->step)
                                : " was stopped before it began"));
      return kInterrupted;
    }
    if (!run || !sleep_unless_interrupted(kWithdrawPollMs)) break;
  }
  say("interrupted; run " + id + " was told to stop, and tgctl status " + id + " shows whether it has");
  return kInterrupted;
}

// Where a run's progress goes: a line that changes on a terminal, else now and then a new one.
class Talk {
 public:
  // A pipe gets a line when it says something else than the one before.
  void preparing(const schema::ReplyBody& reply) {
    const auto* mesh = std::get_if<schema::MeshStatus>(&reply);
    if (mesh == nullptr || mesh->runs.size() != 1 || mesh->runs[0].state > schema::RunState::kStarting) return;
    const schema::RunStatus& run = mesh->runs[0];
    const std::int64_t now_ms = unix_time_ms();
    // Most starts are over by then.
    if (run.state == schema::RunState::kStarting && now_ms - began_ms_ < kQuietMs) return;
    if (terminal_) return live_.show(preparing_line(*mesh, run, now_ms, columns()));
    constexpr std::size_t kWhole = schema::kMostReasonBytes;
    if (run.state == schema::RunState::kStarting && !run.reason.empty() && !count_due(now_ms)) return;
    if (std::string said = preparing_line(*mesh, run, 0, kWhole); said != std::exchange(said_, said))
      say(preparing_line(*mesh, run, now_ms, kWhole));
  }
  // A dry run is no run: the asked node says what it does.
  void looking(const schema::ReplyBody& reply) {
    const auto* mesh = std::get_if<schema::MeshStatus>(&reply);
    if (mesh == nullptr) return;
    const std::int64_t now_ms = unix_time_ms();
    for (const schema::NodeStatus& node : mesh->nodes)
      if (node.name == mesh->node && !node.problem.empty() && (terminal_ || count_due(now_ms)))
        terminal_ ? live_.show(looking_line(node.problem, began_ms_, now_ms, columns()))
                  : say(looking_line(node.problem, began_ms_, now_ms, columns()));
  }
  void running(const schema::RunStatus& run) {
    const std::int64_t now_ms = unix_time_ms();
    tell(run, now_ms, progress_.update(run, now_ms, columns()));
  }
  void end() { live_.end(); }

 private:
  // The last column stays free: a terminal that wraps there would leave lines behind.
  std::size_t columns() const { return terminal_ ? talk_columns() - 1 : kColumns; }
  void tell(const schema::RunStatus& run, std::int64_t now_ms, const std::string& line) {
    if (terminal_) {
      live_.show(line);
    } else if (pace_.due(run, now_ms)) {
      say(line);
    }
  }

  // What is counted changes all the time: a pipe gets a line now and then.
  bool count_due(std::int64_t now_ms) {
    if (now_ms < next_count_ms_) return false;
    next_count_ms_ = now_ms + kCountEveryMs;
    return true;
  }

  const bool terminal_ = LiveLine::possible();
  const std::int64_t began_ms_ = unix_time_ms();
  std::int64_t next_count_ms_ = 0;
  std::string said_;  // by the last line of a start, without its time
  ProgressLine progress_;
  PlainPace pace_;
  LiveLine live_;
};

int follow(Client& client, const std::string& id, Talk& talk) {
  int silent_polls = 0;
  while (true) {
    const Result<schema::RunStatus> run = ask_run(client, id);
    if (interrupted()) {
      talk.end();
      return detached(id);
    }
    if (!run) {
      // One lost answer is no reason to leave a run that goes on.
      if (run.error().kind == ErrorKind::kUnreachable && ++silent_polls < kMostSilentPolls) continue;
      talk.end();
      return fail(run.error());
    }
    silent_polls = 0;
    talk.running(*run);
    if (schema::is_final(run->state)) {
      talk.end();
      return ended(*run);
    }
    if (!sleep_unless_interrupted(kPollMs)) {
      talk.end();
      return detached(id);
    }
  }
}

}  // namespace

int start(Client& client, const Command& command, const schema::JobSpec& job) {
  // Named here, so that whoever is interrupted before the node answers can say which run to stop.
  std::random_device device;
  const std::string id =
      !command.id.empty() || command.dry_run
          ? command.id
          : schema::draw_run_id(to_word(job.model), unix_time_ms(), (std::uint64_t{device()} << 32) | device());
  const int timeout_ms = static_cast<int>(job.start_timeout_ms) + kPreparationMs;
  Talk talk;
  const Meanwhile meanwhile{schema::StatusRequest{id, false},
                            [&talk](const schema::ReplyBody& reply) { talk.preparing(reply); }};
  const Meanwhile looks{schema::StatusRequest{kNoRun, true},
                        [&talk](const schema::ReplyBody& reply) { talk.looking(reply); }};
  const Result<schema::StartReply> plan = Client::as<schema::StartReply>(
      client.ask_patiently(schema::StartRequest{schema::canonical_job(job), id, command.dry_run}, timeout_ms,
                           command.dry_run ? &looks : &meanwhile));
  talk.end();
  if (interrupted() && command.dry_run) return fail(plan ? Error{ErrorKind::kFailed, "interrupted"} : plan.error());
  if (interrupted()) return withdraw(client, id);
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
  return command.detach ? static_cast<int>(kOk) : follow(client, plan->run_id, talk);
}

}  // namespace tg::ctl

#include <chrono>

#include "ctl/format/status_text.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kPollMs = 250;
constexpr std::chrono::seconds kDeadline{60};

int print_state(const schema::RunStatus& run) {
  print(std::string(to_word(run.state)) + "\n");
  if (run.state == schema::RunState::kInterrupted) {
    say(interrupted_text(run));
    return kRunInterrupted;
  }
  if (run.state != schema::RunState::kFailed) {
    if (run.saved_by_all()) return kOk;
    say("run " + run.id + " is " + std::string(to_word(run.state)) + ", but " + run.reason);
    return kNotSaved;
  }
  say("run " + run.id + " FAILED at step " + std::to_string(run.step) + ": " + run.reason);
  return kRunFailed;
}

}  // namespace

int stop(Client& client, const Command& command) {
  Result<schema::RunStatus> run = ask_run(client, command.operand);
  if (!run) return fail(run.error());
  if (schema::has_ended(run->state)) {
    say("run " + run->id + " had ended already");
    print(std::string(to_word(run->state)) + "\n");
    return kOk;
  }
  const Result<schema::StopReply> reply = client.ask_for<schema::StopReply>(schema::StopRequest{run->id});
  if (!reply) return fail(reply.error());
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (true) {
    run = ask_run(client, reply->run_id);
    if (!run && run.error().kind == ErrorKind::kNotFound) {  // it had not begun, and leaves nothing behind
      print("STOPPED\n");
      return kOk;
    }
    if (!run) return fail(run.error());
    if (schema::has_ended(run->state)) return print_state(*run);
    if (std::chrono::steady_clock::now() >= deadline) {
      say("run " + run->id + " is still " + std::string(to_word(run->state)) + " after 60 s; tgctl logs " + run->id +
          " may say why");
      return kTimedOut;
    }
    if (!sleep_unless_interrupted(kPollMs)) {
      say("not waiting any longer; run " + run->id + " was asked to stop");
      return kInterrupted;
    }
  }
}

}  // namespace tg::ctl

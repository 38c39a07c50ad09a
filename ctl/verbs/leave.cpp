// tgctl leave and tgctl join: a node out of the run that is on, and back into it.
#include <chrono>
#include <string>

#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kLeavePollMs = 100;
constexpr std::chrono::seconds kDeadline{60};

}  // namespace

int leave(Client& client, const Command& command) {
  const std::string& node = command.operand;
  const Result<schema::DoneReply> told = client.ask_for<schema::DoneReply>(schema::LeaveRequest{node, false});
  if (!told) return fail(told.error());
  const std::string& id = told->run_id;
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (true) {
    const Result<schema::RunStatus> run = ask_run(client, id);
    if (!run) return fail(run.error());
    for (const schema::Departure& one : run->left) {
      if (one.node != node) continue;
      print(node + " left run " + id + " at step " + std::to_string(one.step) + "\n");
      say("it stays out of that run until it is told to come back: tgctl join " + node);
      return kOk;
    }
    if (schema::has_ended(run->state)) {
      say("run " + id + " is " + std::string(to_word(run->state)) + ": it ended before " + node + " could leave it");
      return kError;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      say(node + " is still in run " + id + " after 60 s; it leaves after the present step, and tgctl logs " + id +
          " may say what keeps that");
      return kTimedOut;
    }
    if (!sleep_unless_interrupted(kLeavePollMs)) {
      say("not waiting any longer; " + node + " was told to leave run " + id);
      return kInterrupted;
    }
  }
}

int join(Client& client, const Command& command) {
  const Result<schema::DoneReply> told = client.ask_for<schema::DoneReply>(schema::LeaveRequest{command.operand, true});
  if (!told) return fail(told.error());
  print(command.operand + " comes into run " + told->run_id + " again\n");
  say("tgctl status " + told->run_id + " shows when it is in");
  return kOk;
}

}  // namespace tg::ctl

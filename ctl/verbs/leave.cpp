// tgctl leave and tgctl join: remove a node from the active run, and let it rejoin.
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
    for (const schema::Departure& one : run->departed) {
      if (one.node != node) continue;
      print(node + " left run " + id + " at step " + std::to_string(one.step) + "\n");
      print_note("it stays out of that run until you run tgctl join " + node);
      return kOk;
    }
    if (schema::has_ended(run->state)) {
      print_note("run " + id + " is " + std::string(to_word(run->state)) + ": it ended before " + node +
                 " could leave it");
      return kError;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      print_note(node + " is still in run " + id + " after 60 s; it leaves after the current step, and tgctl logs " +
                 id + " may show the cause of the delay");
      return kTimedOut;
    }
    if (!sleep_unless_interrupted(kLeavePollMs)) {
      print_note("no longer waiting; " + node + " was asked to leave run " + id);
      return kInterrupted;
    }
  }
}

int join(Client& client, const Command& command) {
  const Result<schema::DoneReply> told = client.ask_for<schema::DoneReply>(schema::LeaveRequest{command.operand, true});
  if (!told) return fail(told.error());
  print(command.operand + " rejoins run " + told->run_id + "\n");
  print_note("tgctl status " + told->run_id + " shows when it is a member");
  return kOk;
}

}  // namespace tg::ctl

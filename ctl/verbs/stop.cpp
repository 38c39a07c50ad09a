#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ctl/format/status_text.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kStopPollMs = 250;
constexpr std::chrono::seconds kDeadline{60};

// Who is to be told: the asked node tells all members. Nobody can speak for all of a run that is PAUSED, so each of its
// members that answers is told; of a run that the asked node has left, a member.
std::vector<std::string> who_stops(const schema::MeshStatus& mesh) {
  const schema::RunStatus& run = mesh.runs.front();
  std::vector<std::string> members, paused;
  for (const schema::MemberStatus& row : run.members) {
    const auto node = std::ranges::find(mesh.nodes, row.node, &schema::NodeStatus::name);
    const bool answers = node != mesh.nodes.end() && node->state != schema::NodeState::kUnreachable;
    if (!answers || schema::has_ended(row.state)) continue;
    members.push_back(row.node);
    if (row.state == schema::RunState::kPaused) paused.push_back(row.node);
  }
  if (run.state == schema::RunState::kPaused && !paused.empty()) return paused;
  if (members.empty() || std::ranges::count(members, mesh.node) > 0) return {""};
  return {members.front()};
}

}  // namespace

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

int stop(Client& client, const Command& command) {
  const Result<schema::MeshStatus> mesh = ask_mesh(client, command.operand, schema::Pick::kOnlyGoing);
  if (!mesh) return fail(mesh.error());
  Result<schema::RunStatus> run = mesh->runs.front();
  if (schema::has_ended(run->state)) {
    say("run " + run->id + " had ended already");
    print(std::string(to_word(run->state)) + "\n");
    return kOk;
  }
  const std::string id = run->id;
  std::optional<Error> refused;
  std::size_t told = 0;
  for (const std::string& node : who_stops(*mesh)) {
    const Result<schema::StopReply> reply = client.ask_for<schema::StopReply>(schema::StopRequest{id, node});
    reply ? void(++told) : void(refused = reply.error());
  }
  if (told == 0) return fail(*refused);
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (true) {
    run = ask_run(client, id);
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
    if (!sleep_unless_interrupted(kStopPollMs)) {
      say("not waiting any longer; run " + run->id + " was asked to stop");
      return kInterrupted;
    }
  }
}

}  // namespace tg::ctl

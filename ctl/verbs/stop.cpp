#include <algorithm>
#include <chrono>
#include <iterator>
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

// The nodes that get the request, the first that can first: a member passes it on to all. A node that joins cannot; a
// PAUSED run has no quorum, so each reachable member gets it.
std::vector<std::string> stop_targets(const schema::MeshStatus& mesh) {
  const schema::RunStatus& run = mesh.runs.front();
  std::vector<std::string> members, joiners, paused;
  for (const schema::MemberStatus& row : run.members) {
    const auto node = std::ranges::find(mesh.nodes, row.node, &schema::NodeStatus::name);
    const bool answers = node != mesh.nodes.end() && node->state != schema::NodeState::kUnreachable;
    if (!answers || schema::has_ended(row.state)) continue;
    const bool joins = row.state == schema::RunState::kStarting && run.state != row.state;
    std::vector<std::string>& others = joins ? joiners : members;
    others.insert(row.node == mesh.node ? others.begin() : others.end(), row.node);
    if (row.state == schema::RunState::kPaused) paused.push_back(row.node);
  }
  if (run.state == schema::RunState::kPaused && !paused.empty()) return paused;
  std::ranges::move(joiners, std::back_inserter(members));
  if (members.empty()) members.push_back(mesh.node);
  return members;
}

}  // namespace

int print_state(const schema::RunStatus& run) {
  print(std::string(to_word(run.state)) + "\n");
  if (run.state == schema::RunState::kInterrupted) {
    print_note(interrupted_text(run));
    return kRunInterrupted;
  }
  if (run.state != schema::RunState::kFailed) {
    if (run.saved_by_all()) return kOk;
    print_note("run " + run.id + " is " + std::string(to_word(run.state)) + ", but " + run.reason);
    return kNotSaved;
  }
  print_note("run " + run.id + " FAILED at step " + std::to_string(run.step) + ": " + run.reason);
  return kRunFailed;
}

int stop(Client& client, const Command& command) {
  const Result<schema::MeshStatus> mesh = ask_mesh(client, command.operand, schema::Pick::kOnlyActive);
  if (!mesh) return fail(mesh.error());
  Result<schema::RunStatus> run = mesh->runs.front();
  if (schema::has_ended(run->state)) {
    print_note("run " + run->id + " has already ended");
    print(std::string(to_word(run->state)) + "\n");
    return kOk;
  }
  const std::string id = run->id;
  std::optional<Error> refused;
  if (run->state == schema::RunState::kPaused)
    for (const std::string& node : silent_members(*mesh))
      print_note(node + " may still be running it; a resume without it ends its part when it is heard again");
  std::size_t told = 0;
  const bool each = run->state == schema::RunState::kPaused;
  for (const std::string& node : stop_targets(*mesh)) {
    if (told > 0 && !each) break;
    const Result<schema::StopReply> reply = client.ask_for<schema::StopReply>(schema::StopRequest{id, node});
    reply ? void(++told) : void(refused = reply.error());
  }
  if (told == 0) return fail(*refused);
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  while (true) {
    run = ask_run(client, id);
    if (!run && run.error().kind == ErrorKind::kNotFound) {  // it had not begun, and left no record
      print("STOPPED\n");
      return kOk;
    }
    if (!run) return fail(run.error());
    if (schema::has_ended(run->state)) return print_state(*run);
    if (std::chrono::steady_clock::now() >= deadline) {
      print_note("run " + run->id + " is still " + std::string(to_word(run->state)) + " after 60 s; tgctl logs " +
                 run->id + " may show why");
      return kTimedOut;
    }
    if (!sleep_unless_interrupted(kStopPollMs)) {
      print_note("no longer waiting; run " + run->id + " was asked to stop");
      return kInterrupted;
    }
  }
}

}  // namespace tg::ctl

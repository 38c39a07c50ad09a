#include <algorithm>
#include <string>

#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/follow.h"
#include "ctl/verbs/verbs.h"
#include "schema/options/job.h"
#include "schema/options/resumed_job.h"

namespace tg::ctl {
namespace {

// The part of the resumed job that tgctl knows; the node has the whole.
schema::JobSpec job_of(const schema::RunStatus& run, const Command& command) {
  schema::JobSpec job;
  job.steps = run.steps;
  for (const std::string& setting : command.settings) (void)schema::override_job_key(job, setting);  // checked before
  return job;
}

// The node that proposes it: the asked one, or another one if that has no copy of the run, or missed its newest
// lineage.
std::string proposer_in(const schema::MeshStatus& mesh, const Command& command) {
  std::string first = mesh.node;
  for (const schema::MemberStatus& row : mesh.runs.front().members) {
    const auto node = std::ranges::find(mesh.nodes, row.node, &schema::NodeStatus::name);
    const bool answers = node != mesh.nodes.end() && node->state != schema::NodeState::kUnreachable;
    if (!answers || !row.problem.empty() || std::ranges::count(command.without, row.node) > 0) continue;
    if (row.node == mesh.node) return row.node;
    if (first == mesh.node) first = row.node;
  }
  return first;
}

}  // namespace

int resume(Client& client, const Command& command) {
  if (const Status status = schema::check_resumed_settings(command.settings); !status)
    return fail(Error{status.error().kind, "--set " + status.error().message});
  const Result<schema::MeshStatus> mesh = ask_mesh(client, command.operand, schema::Pick::kOnly);
  if (!mesh) return fail(mesh.error());
  const schema::RunStatus* const run = &mesh->runs.front();
  const schema::JobSpec job = job_of(*run, command);
  if (const Status status = schema::may_resume(*run, job, command.from_step); !status) return fail(status.error());

  for (const std::string& node : silent_members(*mesh))
    if (std::ranges::count(command.without, node) > 0)
      print_note(node + " may still be running it; --without " + node + " ends its part when it is heard again");
  schema::ResumeRequest request;
  request.without = command.without;
  request.run = run->id;
  request.node = proposer_in(*mesh, command);
  for (const std::string& setting : command.settings) request.settings += setting + "\n";
  request.from_newest = !command.from_step;
  request.from_step = command.from_step.value_or(0);
  request.any_build = command.any_build;
  const int timeout_ms = static_cast<int>(job.start_timeout_ms) + kPreparationMs;
  ProgressPrinter printer;
  const ProgressPoll poll{schema::StatusRequest{run->id, false},
                          [&printer](const schema::ReplyBody& reply) { return printer.print_preparing(reply); }};
  const Result<schema::StartReply> plan =
      Client::as<schema::StartReply>(client.ask_with_probes(request, timeout_ms, &poll));
  printer.end();
  if (interrupted()) return withdraw(client, run->id, request.node);
  if (!plan) return fail(plan.error());
  print_note("run " + plan->run_id + " resumes at step " + std::to_string(plan->from_step));
  print(plan->run_id + "\n");
  return command.detach ? static_cast<int>(kOk) : follow(client, plan->run_id, printer);
}

}  // namespace tg::ctl

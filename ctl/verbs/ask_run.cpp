#include <algorithm>

#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

Result<schema::MeshStatus> ask_mesh(Client& client, const std::string& name, schema::Pick pick) {
  const bool last = name == kLastRun;
  Result<schema::MeshStatus> mesh = client.ask_for<schema::MeshStatus>(
      last ? schema::StatusRequest{"", false, schema::Pick::kNewest} : schema::StatusRequest{name, false, pick});
  if (!mesh) return mesh;
  if (mesh->runs.empty())
    return Error{ErrorKind::kNotFound, "no run is named \"" + name + "\"; tgctl list shows all runs"};
  mesh->runs.resize(1);
  const std::string& id = mesh->runs.front().id;
  if (name != id && (last || pick != schema::Pick::kOnly)) print_note("using run " + id);
  return mesh;
}

std::vector<std::string> silent_members(const schema::MeshStatus& mesh) {
  std::vector<std::string> silent;
  for (const schema::NodeStatus& node : mesh.nodes)
    if (node.state == schema::NodeState::kUnreachable &&
        std::ranges::count(mesh.runs.front().members, node.name, &schema::MemberStatus::node) > 0)
      silent.push_back(node.name);
  return silent;
}

Result<schema::RunStatus> ask_run(Client& client, const std::string& name, schema::Pick pick) {
  Result<schema::MeshStatus> mesh = ask_mesh(client, name, pick);
  if (!mesh) return mesh.error();
  return std::move(mesh->runs.front());
}

Result<schema::RunStatus> poll_run(Client& client, const std::string& id) {
  constexpr int kMaxSilentPolls = 3;  // kControlReplyMs each
  for (int polls = 1;; ++polls) {
    Result<schema::RunStatus> run = ask_run(client, id);
    if (run || run.error().kind != ErrorKind::kUnreachable || interrupted() || polls == kMaxSilentPolls) return run;
  }
}

}  // namespace tg::ctl

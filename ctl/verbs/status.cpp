#include "ctl/format/status_json.h"
#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "ctl/watch/terminal.h"
#include "kernels/base/log.h"

namespace tg::ctl {
namespace {

constexpr int kRepeatMs = 1000;
constexpr int kJsonIndent = 2;

std::string render(const Command& command, const schema::MeshStatus& mesh) {
  const std::int64_t now_ms = unix_time_ms();
  if (command.json) return format_status_json(mesh, now_ms, command.watch ? -1 : kJsonIndent) + "\n";
  const std::size_t columns = data_columns();
  return command.operand.empty() ? format_mesh(mesh, now_ms, columns) : format_run(mesh.runs.front(), now_ms, columns);
}

// 0 if every node is up; else prints which are not.
int check_mesh(const schema::MeshStatus& mesh) {
  const std::string away = unavailable_nodes(mesh);
  if (away.empty()) return kOk;
  print_note("mesh incomplete: " + away);
  return kMeshIncomplete;
}

}  // namespace

int status(Client& client, const Command& command) {
  if (command.watch && !command.json && !command.check && Terminal::possible()) return watch(client, command.operand);
  std::string run = command.operand;
  while (true) {
    Result<schema::MeshStatus> mesh = run.empty() ? client.ask_for<schema::MeshStatus>(schema::StatusRequest{})
                                                  : ask_mesh(client, run, schema::Pick::kNewest);
    if (!mesh) return fail(mesh.error());
    if (!run.empty()) run = mesh->runs.front().id;
    sort_active_first(mesh->runs);
    print(render(command, *mesh));
    const int code = command.check ? check_mesh(*mesh) : static_cast<int>(kOk);
    if (!command.watch || !output_works()) return code;
    if (!sleep_unless_interrupted(kRepeatMs)) return kInterrupted;
  }
}

int list(Client& client, const Command& command) {
  Result<schema::MeshStatus> mesh = client.ask_for<schema::MeshStatus>(schema::StatusRequest{});
  if (!mesh) return fail(mesh.error());
  sort_active_first(mesh->runs);
  const std::int64_t now_ms = unix_time_ms();
  print(command.json ? format_list_json(mesh->runs, now_ms, kJsonIndent) + "\n"
                     : format_runs(mesh->runs, now_ms, data_columns()));
  return kOk;
}

}  // namespace tg::ctl

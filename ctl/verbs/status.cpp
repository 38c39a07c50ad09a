#include "ctl/format/status_json.h"
#include "ctl/format/status_text.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/log.h"

namespace tg::ctl {
namespace {

constexpr int kWatchMs = 1000;
constexpr int kJsonIndent = 2;
constexpr const char* kClearScreen = "\x1b[H\x1b[2J";

Error no_such_run(const std::string& run) {
  return {ErrorKind::kNotFound, "no run is named \"" + run + "\"; tgctl list shows them"};
}

std::string render(const Command& command, const schema::MeshStatus& mesh) {
  if (command.json) return format_status_json(mesh, command.watch ? -1 : kJsonIndent) + "\n";
  const std::int64_t now_ms = unix_time_ms();
  return command.operand.empty() ? format_mesh(mesh, now_ms) : format_run(mesh.runs.front(), now_ms);
}

}  // namespace

Result<schema::RunStatus> ask_run(Client& client, const std::string& run) {
  Result<schema::MeshStatus> mesh = client.ask_for<schema::MeshStatus>(schema::StatusRequest{run, false});
  if (!mesh) return mesh.error();
  if (mesh->runs.empty()) return no_such_run(run);
  return std::move(mesh->runs.front());
}

int status(Client& client, const Command& command) {
  const bool redraw = command.watch && !command.json && stdout_is_terminal();
  while (true) {
    const Result<schema::MeshStatus> mesh =
        client.ask_for<schema::MeshStatus>(schema::StatusRequest{command.operand, false});
    if (!mesh) return fail(mesh.error());
    if (!command.operand.empty() && mesh->runs.empty()) return fail(no_such_run(command.operand));
    print((redraw ? kClearScreen : "") + render(command, *mesh));
    if (!command.watch) return kOk;
    if (!sleep_unless_interrupted(kWatchMs)) return kInterrupted;
  }
}

int list(Client& client, const Command&) {
  const Result<schema::MeshStatus> mesh = client.ask_for<schema::MeshStatus>(schema::StatusRequest{});
  if (!mesh) return fail(mesh.error());
  print(format_runs(mesh->runs, unix_time_ms()));
  return kOk;
}

}  // namespace tg::ctl

#include "ctl/format/table.h"
#include "ctl/terminal/console.h"
#include "ctl/verbs/verbs.h"
#include "schema/text.h"

namespace tg::ctl {

int delete_run(Client& client, const Command& command) {
  const Result<schema::MeshStatus> mesh = ask_mesh(client, command.operand, schema::Pick::kOnly);
  if (!mesh) return fail(mesh.error());
  const schema::RunStatus& run = mesh->runs.front();
  if (!schema::has_ended(run.state))
    return fail(Error{ErrorKind::kRefused, "run " + run.id + " is " + std::string(to_word(run.state)) +
                                               "; stop it first: tgctl stop " + run.id});
  std::vector<std::string> deleted, silent;
  std::uint64_t bytes = 0;
  int code = kOk;
  for (const schema::NodeStatus& node : mesh->nodes) {
    const Result<schema::DoneReply> done = client.ask_for<schema::DoneReply>(schema::DeleteRequest{run.id, node.name});
    if (done) {
      deleted.push_back(node.name);
      bytes += done->freed_bytes;
    } else if (done.error().kind == ErrorKind::kUnreachable) {
      silent.push_back(node.name);
    } else if (done.error().kind != ErrorKind::kNotFound) {
      code = fail(done.error());
    }
  }
  if (!deleted.empty())
    print("run " + run.id + " deleted on " + schema::joined(deleted) + ": " + format_bytes(static_cast<double>(bytes)) +
          "\n");
  if (silent.empty()) return code;
  print_note(schema::joined(silent) + " did not answer and still has its copy of run " + run.id +
             "; when it is back: tgctl delete " + run.id);
  return kError;
}

}  // namespace tg::ctl

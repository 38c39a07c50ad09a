#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

constexpr int kPollMs = 500;

}  // namespace

int logs(Client& client, const Command& command) {
  const Result<schema::RunStatus> run = ask_run(client, command.operand);
  if (!run) return fail(run.error());
  schema::LogsRequest request{run->id, command.node, 0};
  while (true) {
    const Result<schema::SliceReply> slice = client.ask_for<schema::SliceReply>(request);
    if (!slice) return fail(slice.error());
    print(slice->data);
    request.offset += slice->data.size();
    if (slice->final) return kOk;
    if (!slice->data.empty()) continue;
    if (!command.follow || !output_works()) return kOk;
    if (!sleep_unless_interrupted(kPollMs)) return kInterrupted;
  }
}

}  // namespace tg::ctl

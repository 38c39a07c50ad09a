
#include "ctl/fetch/part_file.h"
#include "ctl/report/data_page.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/follow.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {

int data(Client& client, const Command& command, const schema::JobSpec& job) {
  if (const Status free = check_writable(command.output, command.force); !free) return fail(free.error());
  schema::StartRequest request{schema::canonical_job(job), "", true};
  request.pictures = true;
  ProgressPrinter printer;
  const ProgressPoll activity{schema::StatusRequest{kNoRun, true},
                              [&printer](const schema::ReplyBody& reply) { return printer.print_activity(reply); }};
  const Result<schema::StartReply> found = Client::as<schema::StartReply>(
      client.ask_with_probes(request, static_cast<int>(job.start_timeout_ms) + kPreparationMs, &activity));
  printer.end();
  if (!found) return fail(found.error());
  print(data_text(*found));
  if (command.output.empty()) return kOk;
  const Result<std::string> page = data_page(command.operand, *found);
  if (!page) return fail(page.error());
  if (const Status written = write_file(command.output, *page); !written) return fail(written.error());
  print(command.output + "\n");
  return kOk;
}

}  // namespace tg::ctl

#include <optional>
#include <string>
#include <utility>

#include "ctl/format/status_text.h"
#include "ctl/format/table.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/follow.h"
#include "ctl/verbs/verbs.h"
#include "kernels/base/random.h"
#include "schema/text.h"

namespace tg::ctl {
int start(Client& client, const Command& command, const schema::JobSpec& job) {
  // The id is drawn here, so that after Ctrl-C the run can be stopped even if the node has not answered.
  const std::string id = !command.id.empty() || command.dry_run
                             ? command.id
                             : schema::draw_run_id(to_word(job.model), unix_time_ms(), draw_bits());
  const int timeout_ms = static_cast<int>(job.start_timeout_ms) + kPreparationMs;
  ProgressPrinter printer;
  const ProgressPoll poll{schema::StatusRequest{id, false},
                          [&printer](const schema::ReplyBody& reply) { return printer.print_preparing(reply); }};
  const ProgressPoll activity{schema::StatusRequest{kNoRun, true},
                              [&printer](const schema::ReplyBody& reply) { return printer.print_activity(reply); }};
  const Result<schema::StartReply> plan = Client::as<schema::StartReply>(
      client.ask_with_probes(schema::StartRequest{schema::canonical_job(job), id, command.dry_run, command.without},
                             timeout_ms, command.dry_run ? &activity : &poll));
  printer.end();
  if (interrupted() && command.dry_run) return fail(plan ? Error{ErrorKind::kFailed, "interrupted"} : plan.error());
  if (interrupted()) return withdraw(client, id);
  if (!plan) return fail(plan.error());
  // More nodes do not make a replayed run faster.
  const std::optional<std::string> warning =
      job.compute == schema::Compute::kTrain ? speed_up_warning(*plan) : std::nullopt;
  if (command.dry_run) {
    print(format_plan(*plan));
    if (job.split == schema::Split::kSpeed)
      print("split = speed: a start measures each node and splits the batch in proportion to their speeds\n");
    if (warning) warn(*warning);
    return kOk;
  }
  print(plan->run_id + "\n");
  if (!plan->data_read.empty()) print_note("reads " + plan->data_read);
  for (const std::string& line : lines_of(plan->data_warnings)) warn(line);
  if (warning) warn(*warning);
  return command.detach ? static_cast<int>(kOk) : follow(client, plan->run_id, printer);
}

}  // namespace tg::ctl

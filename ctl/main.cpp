// tgctl's entry point: reads the command line, connects to one node, runs one command.
#include <cstdlib>

#include "ctl/client.h"
#include "ctl/command_line/command_line.h"
#include "ctl/job_file.h"
#include "ctl/models/model_report.h"
#include "ctl/terminal/console.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/verbs/verbs.h"

namespace tg::ctl {
namespace {

int printed(const std::string& text) {
  print(text);
  return kOk;
}

int run(const Command& command) {
  // The job is read first, so that a mistake in it is reported whether a node answers or not.
  schema::JobSpec job;
  if (command.verb == Verb::kStart || command.verb == Verb::kPlan || command.verb == Verb::kData) {
    Result<schema::JobSpec> read = read_job(command);
    if (!read) return fail(read.error());
    job = *std::move(read);
  }
  if (command.verb == Verb::kModels) return printed(command.json ? format_models_json() : format_models());
  if (command.verb == Verb::kKeygen) return keygen(command);
  if (command.verb == Verb::kExport) return export_metrics(command);
  if (command.verb == Verb::kReport) return report(command);
  Result<Client> client = Client::connect(command.address, command.key_file);
  if (!client) return fail(client.error());
  switch (command.verb) {
    case Verb::kStart:
      return start(*client, command, job);
    case Verb::kResume:
      return resume(*client, command);
    case Verb::kStatus:
      return status(*client, command);
    case Verb::kStop:
      return stop(*client, command);
    case Verb::kLeave:
      return leave(*client, command);
    case Verb::kJoin:
      return join(*client, command);
    case Verb::kFetch:
      return fetch(*client, command);
    case Verb::kDelete:
      return delete_run(*client, command);
    case Verb::kList:
      return list(*client, command);
    case Verb::kCompare:
      return compare(*client, command);
    case Verb::kData:
      return data(*client, command, job);
    case Verb::kLogs:
      return logs(*client, command);
    case Verb::kWait:
      return wait(*client, command);
    case Verb::kDoctor:
      return doctor(*client, command);
    case Verb::kPlan:
      return plan(*client, command, job);
    case Verb::kModels:
    case Verb::kKeygen:
    case Verb::kExport:
    case Verb::kReport:
      break;  // done above
    case Verb::kVersion:
      return version(*client, command);
  }
  return kError;
}

}  // namespace
}  // namespace tg::ctl

int main(int argc, char** argv) {
  using namespace tg::ctl;
  catch_interrupt();
  const tg::Result<Command> command = parse_command(argc, argv, std::getenv("TGCTL_ADDRESS"), std::getenv("TGCTL_KEY"));
  if (!command) return fail(command.error());
  int code = kOk;
  if (!command->help.empty()) {
    print(command->help);
  } else if (command->version) {
    print(version_line());
  } else {
    code = run(*command);
  }
  return close_output(code);
}

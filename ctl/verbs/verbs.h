// One function per verb, one file each: asks the node, prints, gives the exit code. Main thread only.
#pragma once

#include "ctl/client.h"
#include "ctl/command_line/command_line.h"
#include "schema/options/job.h"

namespace tg::ctl {

int start(Client& client, const Command& command, const schema::JobSpec& job);
int status(Client& client, const Command& command);
int stop(Client& client, const Command& command);
int fetch(Client& client, const Command& command);
int delete_run(Client& client, const Command& command);
int list(Client& client, const Command& command);
int logs(Client& client, const Command& command);
int wait(Client& client, const Command& command);
int bench(Client& client, const Command& command);
int doctor(Client& client, const Command& command);
int plan(Client& client, const Command& command, const schema::JobSpec& job);
int models(const Command& command);      // asks no node
int keygen(const Command& command);      // asks no node
int completion(const Command& command);  // asks no node
int man(const Command& command);         // asks no node
int complete(const Command& command);
int version(Client& client, const Command& command);
std::string version_line();  // tgctl's own

// The one run that an id or a unique beginning of one names.
Result<schema::RunStatus> ask_run(Client& client, const std::string& run);

}  // namespace tg::ctl

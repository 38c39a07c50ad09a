// One function per verb, one file each: asks the node, prints, gives the exit code. Main thread only. What only prints
// a text stands in main.cpp.
#pragma once

#include "ctl/client.h"
#include "ctl/command_line/command_line.h"
#include "ctl/fetch/part_file.h"
#include "ctl/report/page.h"
#include "schema/options/job.h"

namespace tg::ctl {

int start(Client& client, const Command& command, const schema::JobSpec& job);
int resume(Client& client, const Command& command);
int data(Client& client, const Command& command, const schema::JobSpec& job);
int status(Client& client, const Command& command);
int watch(Client& client, const std::string& run);  // on a terminal, until a key or a signal ends it; "" = all runs
int stop(Client& client, const Command& command);
int print_state(const schema::RunStatus& run);  // of a run that has ended; its exit code
int leave(Client& client, const Command& command);
int join(Client& client, const Command& command);
int fetch(Client& client, const Command& command);
int report(const Command& command);  // asks a node unless it is given a folder
// From the files of a folder that `fetch` wrote.
Result<ReportData> read_report(const std::string& folder);
int export_metrics(const Command& command);  // asks a node unless it is given a folder
// metrics.jsonl of an ended run, checked as `fetch` does, as a file in this folder that is gone when the value is.
Result<PartFile> fetch_metrics(Client& client, const std::string& run, const std::string& folder);
int delete_run(Client& client, const Command& command);
int list(Client& client, const Command& command);
int compare(Client& client, const Command& command);
int logs(Client& client, const Command& command);
int wait(Client& client, const Command& command);
int doctor(Client& client, const Command& command);
int plan(Client& client, const Command& command, const schema::JobSpec& job);
int keygen(const Command& command);  // asks no node
int version(Client& client, const Command& command);
std::string version_line();  // tgctl's own

// The one run that a user names by its id, by a beginning, or as @last, the newest; and the nodes. What a beginning
// means where several runs have it depends on the verb: those that end or delete a run take kOnly, and of the others
// this says on stderr which run it is. Ask for it by its id from then on: tomorrow the name may be another run's.
Result<schema::MeshStatus> ask_mesh(Client& client, const std::string& name, schema::Pick pick);
Result<schema::RunStatus> ask_run(Client& client, const std::string& name, schema::Pick pick = schema::Pick::kOnly);
// Of a run that was seen before: one lost answer is no reason to leave it, three are.
Result<schema::RunStatus> ask_run_again(Client& client, const std::string& id);

}  // namespace tg::ctl

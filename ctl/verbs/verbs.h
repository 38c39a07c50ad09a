// The commands of tgctl, one function and one file each: asks the node, prints, returns the exit code. main.cpp has
// those that only print a text. Main thread only.
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
int watch(Client& client, const std::string& run);  // full-screen, until a key or a signal ends it; "" = all runs
int stop(Client& client, const Command& command);
int print_state(const schema::RunStatus& run);  // prints how a run has ended, and returns its exit code
int leave(Client& client, const Command& command);
int join(Client& client, const Command& command);
int fetch(Client& client, const Command& command);
int report(const Command& command);  // asks a node unless it is given a folder
// Reads the files of a folder that `fetch` wrote.
Result<ReportData> read_report(const std::string& folder);
int export_metrics(const Command& command);  // asks a node unless it is given a folder
// Fetches and checks an ended run's metrics.jsonl. The file is in this folder as long as the returned value exists.
Result<PartFile> fetch_metrics(Client& client, const std::string& run, const std::string& folder);
int delete_run(Client& client, const Command& command);
int list(Client& client, const Command& command);
int compare(Client& client, const Command& command);
int logs(Client& client, const Command& command);
int wait(Client& client, const Command& command);
int doctor(Client& client, const Command& command);
int plan(Client& client, const Command& command, const schema::JobSpec& job);
int keygen(const Command& command);  // needs no node
int version(Client& client, const Command& command);
std::string version_line();  // tgctl's own

// Returns the nodes and the one run with this id or prefix; @last is the newest. Commands that end or delete a run use
// kOnly; for the others this prints the chosen run's id. Callers use that id from then on, because the prefix may come
// to mean another run.
Result<schema::MeshStatus> ask_mesh(Client& client, const std::string& name, schema::Pick pick);
// The members of its one run that may be running it, unheard.
std::vector<std::string> silent_members(const schema::MeshStatus& mesh);
Result<schema::RunStatus> ask_run(Client& client, const std::string& name, schema::Pick pick = schema::Pick::kOnly);
// Polls a run that was seen before. Fails only after three requests without an answer.
Result<schema::RunStatus> poll_run(Client& client, const std::string& id);

}  // namespace tg::ctl

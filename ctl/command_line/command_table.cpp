#include "ctl/command_line/command_table.h"

#include <algorithm>

#include "ctl/plan/link_rate.h"
#include "kernels/base/check.h"
#include "schema/limits.h"
#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

std::function<Status(Command&, const std::string&)> text(std::string Command::*field) {
  return [field](Command& command, const std::string& value) -> Status {
    command.*field = value;
    return {};
  };
}

std::function<Status(Command&, const std::string&)> on(bool Command::*field) {
  return [field](Command& command, const std::string&) -> Status {
    command.*field = true;
    return {};
  };
}

template <class Value, class Parse>
std::function<Status(Command&, const std::string&)> parsed(Value Command::*field, Parse parse) {
  return [=](Command& command, const std::string& value) -> Status {
    const auto result = parse(value);
    if (!result) return result.error();
    command.*field = *result;
    return {};
  };
}

Status set_every(Command& command, const std::string& value) {
  constexpr std::uint64_t kMinMs = 1000, kMaxMs = 3'600'000;
  const Result<std::uint64_t> ms = schema::parse_duration_ms(value);
  if (!ms) return ms.error();
  if (*ms < kMinMs || *ms > kMaxMs) return usage("it takes 1s to 1h");
  command.every_ms = *ms;
  return {};
}

Status add_setting(Command& command, const std::string& value) {
  if (value.find('=') == std::string::npos) {
    const std::string key = schema::clip_text(value, 100);
    return usage("\"" + key + "\" is not of the form key=value, in one word: --set " + key + "=VALUE");
  }
  command.settings.push_back(value);
  return {};
}

Status add_without(Command& command, const std::string& value) {
  if (!schema::is_node_name(value))
    return usage("--without \"" + schema::clip_text(value, 100) + "\" is not a node's name");
  command.without.push_back(value);
  return {};
}

Status set_nodes(Command& command, const std::string& value) {
  command.nodes = schema::parse_number<std::uint64_t>(value).value_or(0);
  if (command.nodes >= 1 && command.nodes <= schema::kMaxMembers) return {};
  return schema::bad_value(value, "a number of nodes from 1 to " + std::to_string(schema::kMaxMembers));
}

Status set_seconds(Command& command, const std::string& value) {
  command.seconds = schema::parse_number<std::uint64_t>(value).value_or(0);
  if (command.seconds >= 1 && command.seconds <= schema::kMaxExamineSeconds) return {};
  return schema::bad_value(value, "a number of seconds from 1 to " + std::to_string(schema::kMaxExamineSeconds) +
                                      "; --no-bandwidth measures no link");
}

Status set_from(Command& command, const std::string& value) {
  command.from_step = schema::parse_number<std::uint64_t>(value);
  if (command.from_step) return {};
  return schema::bad_value(value, "a step; tgctl status RUN shows those that are there");
}

Status set_rotate(Command& command, const std::string& value) {
  if (value != "add" && value != "use" && value != "drop") return schema::bad_value(value, "add, use or drop");
  command.rotate = value;
  return {};
}

Status set_format(Command& command, const std::string& value) {
  if (value != "csv" && value != "tensorboard") return schema::bad_value(value, "csv or tensorboard");
  command.format = value;
  return {};
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {"address", "", "HOST:PORT", "any node's; else TGCTL_ADDRESS or 127.0.0.1:7701", text(&Command::address)},
      {"key", "", "FILE", "an operator's keys, or a cluster's; else TGCTL_KEY", text(&Command::key_file)},
      {"help", "h", "", "print this", nullptr},
      {"set", "", "KEY=VALUE", "set a key of the job (tgctl help job); repeatable", add_setting},
      {"without", "", "NODE", "a node that is not there; it may come in later", add_without},
      {"id", "", "ID", "id of the run; else the node draws one", text(&Command::id)},
      {"from", "", "STEP", "the state of this step; else the newest", set_from},
      {"any-build", "", "", "even if builds, processors or threads differ", on(&Command::any_build)},
      {"detach", "d", "", "return as soon as the run is started", on(&Command::detach)},
      {"dry-run", "", "", "validate and predict, but start nothing", on(&Command::dry_run)},
      {"json", "", "", "for programs: stable keys, schema_version 1", on(&Command::json)},
      {"watch", "", "", "a live view; in a pipe, again each second", on(&Command::watch)},
      {"check", "", "", "exit with 8 unless every node is up", on(&Command::check)},
      {"output", "o", "DIR", "folder to write to; created if necessary", text(&Command::output)},
      {"to", "", "FORMAT", "csv or tensorboard", set_format},
      {"page", "o", "FILE", "the HTML page to write", text(&Command::output)},
      {"every", "", "DURATION", "again and again, such as 10s, until the run ends", set_every},
      {"mistakes", "", "", "an ended run's confusion matrix and worst mistakes", on(&Command::mistakes)},
      {"partial", "", "", "if it FAILED or is INTERRUPTED: its newest state", on(&Command::partial)},
      {"force", "", "", "overwrite existing files", on(&Command::force)},
      {"follow", "f", "", "continue until the run ends or Ctrl-C", on(&Command::follow)},
      {"node", "", "NODE", "this node's log; else that of the asked node", text(&Command::node)},
      {"for", "", "STATE", "a state, step=N, or finished (the default)", text(&Command::until)},
      {"timeout", "", "DURATION", "wait at most this long, such as 10m; else forever",
       parsed(&Command::timeout_ms, schema::parse_duration_ms)},
      {"nodes", "", "N", "how many nodes there would be, 1 to 127", set_nodes},
      {"link", "", "RATE", "each node's link, such as 1Gbps; else as measured",
       parsed(&Command::link_mbps, parse_link_mbps)},
      {"seconds", "", "S", "for each link, both ways, 1 to 20; else 3", set_seconds},
      {"no-bandwidth", "", "", "measure no link: nothing is disturbed", on(&Command::no_bandwidth)},
      {"compute", "", "DURATION", "a node's computing in a step, such as 80ms; else as timed",
       parsed(&Command::compute_ms, schema::parse_duration_ms)},
      {"operator", "", "NAME", "make keys for this operator, and list it", text(&Command::operator_name)},
      {"read-only", "", "", "the operator may look and fetch, and change nothing", on(&Command::read_only)},
      {"rotate", "", "STEP", "a second cluster key: add it, use it, drop the old", set_rotate},
  };
  return rows;
}

}  // namespace

const std::vector<VerbRow>& verb_rows() {
  static const std::vector<VerbRow> rows = {
      {Verb::kStart,
       "start",
       "JOB",
       "start a run from a job file and follow it",
       {"tgctl start deploy/jobs/lenet-synthetic.job", "tgctl start lenet.job --set steps=200 --id first --detach"},
       "JOB is a file, the name of an installed job, or - for stdin. Prints the run's id on stdout, then a line of "
       "progress on stderr. Ctrl-C detaches, and the run continues; a run that has not begun yet is stopped. "
       "Exits with 0 when the run is COMPLETED or STOPPED, 5 when it FAILED, 6 when a member could not save it, 10 "
       "when it is INTERRUPTED. A PAUSED run is followed until it goes on. --without names a node that is dead for "
       "good, or "
       "not there today: the others begin, and it comes into the run when it is back.",
       {"set", "without", "id", "detach", "dry-run", "address", "key", "help"}},
      {Verb::kResume,
       "resume",
       "RUN",
       "go on with a run that has ended, and follow it",
       {"tgctl resume first", "tgctl resume first --set steps=2000 --detach"},
       "RUN is an id, a beginning that only one run has, or @last. All nodes must be up, except those that --without "
       "names. They go on from the newest "
       "state that all of them have; tgctl status RUN shows which are there. The run keeps its id and its data, and "
       "its "
       "bits are those of a run that was never interrupted, if no member had left it. --set changes steps, the "
       "learning rate and some more keys "
       "(tgctl help job says which); with more steps a COMPLETED run is trained on. --any-build is for nodes that have "
       "changed since: then the bits may differ. Exits as start does.",
       {"set", "from", "without", "any-build", "detach", "address", "key", "help"}},
      {Verb::kStatus,
       "status",
       "[RUN]",
       "show nodes and runs, or one run and its members",
       {"tgctl status", "tgctl status first --json"},
       "Runs in progress come first. RUN is an id, a beginning of one, or @last, the newest run. Where several match, "
       "it is the newest in progress, else the newest; the same holds for logs and wait, and stderr says which. "
       "On a terminal --watch is a view of its own; its key ? lists the keys. "
       "--check is for health checks: it also says on stderr which nodes are not up, and why.",
       {"json", "watch", "check", "address", "key", "help"}},
      {Verb::kStop,
       "stop",
       "RUN",
       "end a run after its current step; its state is kept",
       {"tgctl stop first", "tgctl stop f"},
       "RUN is an id, @last, or a beginning: of several that match, the one in progress. Waits until the run "
       "has ended (60 s) and prints its "
       "state. It is no error if the run has already ended. A PAUSED run becomes INTERRUPTED and keeps its state: the "
       "exit code is 10, and tgctl resume goes on when all nodes are back.",
       {"address", "key", "help"}},
      {Verb::kLeave,
       "leave",
       "NODE",
       "let a node leave the run that is on; the others go on",
       {"tgctl leave node-c", "tgctl leave node-c --address 10.0.0.2:7701"},
       "No step is lost: the node leaves where all members have one state. Waits until it has left (60 s). Its tgd "
       "goes on, and stays out of that run until tgctl join, also when it is restarted. To reboot a machine, no leave "
       "is needed: its node comes back by itself. Another build of tgd cannot come back: stop the run to upgrade.",
       {"address", "key", "help"}},
      {Verb::kJoin,
       "join",
       "NODE",
       "let a node that has left come into the run again",
       {"tgctl join node-c", "tgctl join node-c --address 10.0.0.2:7701"},
       "Nodes that were lost, restarted or replaced come back by themselves; this is for one that was told to leave. "
       "It "
       "is given the state while the others wait for a moment.",
       {"address", "key", "help"}},
      {Verb::kFetch,
       "fetch",
       "RUN",
       "get the model and records of an ended run",
       {"tgctl fetch first -o first-model", "tgctl fetch @last -o rescued --partial"},
       "RUN is an id, @last, or a beginning: of several that match, the newest that has ended. Checks that all "
       "members agree on the state, then writes model.safetensors (moving average), "
       "model-raw.safetensors, metrics.jsonl, run.json, views.jsonl (who trained which steps), members.json (what each "
       "computed with), model.json (network, preprocessing, classes, accuracy) and "
       "predict.py, which runs the model in PyTorch, and prints their paths.",
       {"output", "partial", "force", "address", "key", "help"}},
      {Verb::kReport,
       "report",
       "RUN|DIR",
       "write a page that shows a run: curves, members, data",
       {"tgctl report first -o first.html", "tgctl report @last -o live.html --every 10s"},
       "One HTML file that needs nothing else. RUN may go on: with --every the page is written again until the run has "
       "ended, and a browser that shows it loads it again. With --mistakes the asked node, which must be in no run, "
       "evaluates the model of a COMPLETED or STOPPED run again: the page then has a confusion matrix (up to 100 "
       "classes), the most confused classes, and the pictures that were most wrong. DIR is a folder that fetch wrote, "
       "where such a page is already: report.html. Prints the file's path.",
       {"page", "every", "mistakes", "force", "address", "key", "help"}},
      {Verb::kExport,
       "export",
       "RUN|DIR",
       "write a run's metrics for a spreadsheet or TensorBoard",
       {"tgctl export first --to csv -o first-metrics",
        "tgctl export first-model --to tensorboard -o tensorboard/first"},
       "DIR is a folder that fetch wrote; else RUN is an id, @last, or a beginning: of several that match, the "
       "newest that has ended. csv: metrics.csv, a line for each step and a column for each metric. tensorboard: a "
       "file "
       "of events, with its step and time for each number; then tensorboard --logdir tensorboard shows the runs in the "
       "folders there. Prints the file's path.",
       {"to", "output", "force", "address", "key", "help"}},
      {Verb::kDelete,
       "delete",
       "RUN",
       "delete an ended run on all nodes",
       {"tgctl delete first", "tgctl delete lenet-20171204-0900-3f2a"},
       "RUN is an id, or a beginning that only one run has. Its models, metrics and logs are then gone. A node that "
       "does not answer keeps its copy and is named; the "
       "exit code is then 1.",
       {"address", "key", "help"}},
      {Verb::kList,
       "list",
       "",
       "show the runs: those in progress, then the newest",
       {"tgctl list", "tgctl list --json --address 10.0.0.2:7701"},
       "",
       {"json", "address", "key", "help"}},
      {Verb::kCompare,
       "compare",
       "RUN RUN...",
       "show what differs between runs",
       {"tgctl compare first second", "tgctl compare first second -o compared.html"},
       "The keys of their jobs that differ, and what came of them: state, steps, time, loss, accuracy. With -o a page, "
       "with the curves of up to four runs over each other.",
       {"page", "force", "address", "key", "help"}},
      {Verb::kData,
       "data",
       "show JOB",
       "show what a job would train on",
       {"tgctl data show my.job", "tgctl data show my.job -o samples.html"},
       "Starts nothing; the asked node reads the data as for a start. Prints classes, samples, their shape, steps an "
       "epoch, and what may not be what was meant. With -o a page of the first training samples, as the network sees "
       "them.",
       {"set", "page", "force", "address", "key", "help"}},
      {Verb::kLogs,
       "logs",
       "RUN",
       "print a run's log",
       {"tgctl logs first", "tgctl logs first -f --node node-b"},
       "",
       {"follow", "node", "address", "key", "help"}},
      {Verb::kWait,
       "wait",
       "RUN",
       "wait until a run reaches a state",
       {"tgctl wait first --for completed --timeout 10m", "tgctl wait first --for step=1000"},
       "Exits with 0 when the state is reached, 124 when the time is up, 5 when the run FAILED and 10 when it is "
       "INTERRUPTED (unless that was the goal), 1 when the run ended in another way.",
       {"for", "timeout", "address", "key", "help"}},
      {Verb::kDoctor,
       "doctor",
       "",
       "examine all nodes and links, and say what to fix",
       {"tgctl doctor", "tgctl doctor --no-bandwidth --json"},
       "The asked node has every node examine itself and its way to every other: configuration, versions, names, "
       "ports, keys, round trips, MTU, clocks, bandwidth, data sets, disk, memory, open files, engine. Each "
       "problem is named with its fix. During a run, nothing is done that disturbs it. Exits with 0 if nothing "
       "failed or warned, else with 9.",
       {"seconds", "no-bandwidth", "link", "json", "address", "key", "help"}},
      {Verb::kPlan,
       "plan",
       "JOB",
       "predict a job's steps on more nodes, or another link",
       {"tgctl plan deploy/jobs/lenet-synthetic.job --nodes 8 --link 1Gbps",
        "tgctl plan my.job --nodes 4 --link 1Gbps --compute 80ms"},
       "JOB is as for start. Starts nothing. Predicts a step on N nodes like the asked one, what it is bound by, and a "
       "table of other numbers of nodes. Without --link and --compute the asked node prepares the job as start "
       "--dry-run does, to measure its link and to time some steps; it refuses that while a run is on.",
       {"nodes", "link", "compute", "set", "json", "address", "key", "help"}},
      {Verb::kModels,
       "models",
       "",
       "list the models: input, parameters, operations",
       {"tgctl models", "tgctl models --json"},
       "Asks no node. A job names one: model = NAME. Some can only be replayed (compute = replay).",
       {"json", "help"}},
      {Verb::kKeygen,
       "keygen",
       "FILE",
       "make a cluster key file, or keys of operators",
       {"tgctl keygen cluster.key", "tgctl keygen cluster.key --operator alice"},
       "FILE is the cluster key file. Copy it to every node and name it there: key-file = FILE. Nodes see within "
       "seconds that it changed. An operator's keys go to NAME.key in this folder. Rotation, while runs go on: "
       "--rotate add, copy the file to all nodes; --rotate use, copy; --rotate drop, copy.",
       {"operator", "read-only", "rotate", "help"}},
      {Verb::kCompletion,
       "completion",
       "SHELL",
       "print what makes bash or zsh complete tgctl, tgd",
       {"tgctl completion bash > ~/.local/share/bash-completion/completions/tgctl",
        "tgctl completion zsh > /usr/local/share/zsh/site-functions/_tgctl"},
       "Packages and cmake --install put it where the shells look. For this shell only: source <(tgctl completion "
       "bash). It asks the node for runs and nodes.",
       {"help"}},
      {Verb::kMan,
       "man",
       "PAGE",
       "print a manual page: tgctl, tgd, tgd.conf, tgd.job",
       {"tgctl man tgd.conf | man -l -", "tgctl man tgctl > tgctl.1"},
       "",
       {"help"}},
      {Verb::kVersion,
       "version",
       "",
       "print the versions of tgctl and of the node",
       {"tgctl version", "tgctl --version"},
       "",
       {"address", "key", "help"}},
  };
  return rows;
}

const OptionRow& option_row(std::string_view name) {
  const auto& rows = option_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [name](const OptionRow& r) { return r.name == name; });
  TG_CHECK(row != rows.end(), name);
  return *row;
}

const VerbRow* find_verb(std::string_view name) {
  const auto& rows = verb_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [name](const VerbRow& r) { return r.name == name; });
  return row == rows.end() ? nullptr : &*row;
}

const VerbRow& verb_row(Verb verb) {
  const auto& rows = verb_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [verb](const VerbRow& r) { return r.verb == verb; });
  TG_CHECK(row != rows.end());
  return *row;
}

}  // namespace tg::ctl

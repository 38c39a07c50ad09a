#include "ctl/command_line/command_table.h"

#include <algorithm>

#include "ctl/plan/link_rate.h"
#include "kernels/base/check.h"
#include "schema/limits.h"
#include "schema/options/option_rows.h"
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

Status add_setting(Command& command, const std::string& value) {
  if (value.find('=') == std::string::npos) {
    const std::string key = schema::clip_text(value, 100);
    return usage("\"" + key + "\" is not of the form key=value, in one word: --set " + key + "=VALUE");
  }
  command.settings.push_back(value);
  return {};
}

Status add_without(Command& command, const std::string& value) {
  if (!schema::is_node_name(value)) return usage("\"" + schema::clip_text(value, 100) + "\" is not a node's name");
  command.without.push_back(value);
  return {};
}

Result<std::uint64_t> parse_step(const std::string& value) {
  const auto step = schema::parse_number<std::uint64_t>(value);
  if (step) return *step;
  return schema::bad_value(value, "a step; tgctl status RUN shows those that there are");
}

// The setters of the option tables of schema.
using schema::WholeRange;
auto whole(std::uint64_t Command::*field, WholeRange range) { return schema::whole_row("", field, range, "").set; }
auto duration(std::uint64_t Command::*field, WholeRange ms) { return schema::duration_row("", field, ms, "").set; }
auto word(std::string Command::*field, const std::vector<std::string>& known) {
  return schema::word_row<Command>(
             "", known, "", [=](Command& command, std::size_t index) { command.*field = known[index]; },
             [](const Command&) { return std::size_t{0}; })
      .set;
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {"address", "", "HOST:PORT", "node to ask; else TGCTL_ADDRESS or this machine's", text(&Command::address)},
      {"key", "", "FILE", "an operator's or the cluster's keys; else TGCTL_KEY", text(&Command::key_file)},
      {"help", "h", "", "print this", nullptr},
      {"set", "", "KEY=VALUE", "set a key of the job (tgctl help job); repeatable", add_setting, true},
      {"without", "", "NODE", "run without this node, which may join later", add_without, true},
      {"id", "", "ID", "name the run; else the node draws an id", text(&Command::id)},
      {"from", "", "STEP", "resume from this step; else from the newest", parsed(&Command::from_step, parse_step)},
      {"any-build", "", "", "even if builds, processors or threads differ", on(&Command::any_build)},
      {"detach", "d", "", "return as soon as the run has started", on(&Command::detach)},
      {"dry-run", "", "", "validate and predict, but start nothing", on(&Command::dry_run)},
      {"json", "", "", "for programs: stable keys, schema_version 1", on(&Command::json)},
      {"watch", "", "", "live view; in a pipe, print again every second", on(&Command::watch)},
      {"check", "", "", "exit with 8 unless every node is up", on(&Command::check)},
      {"output", "o", "DIR", "folder to write to (created if necessary)", text(&Command::output)},
      {"to", "", "FORMAT", "csv or tensorboard", word(&Command::format, {"csv", "tensorboard"})},
      {"page", "o", "FILE", "HTML page to write", text(&Command::output)},
      {"every", "", "DURATION", "write again every 10s, for example, until it ends",
       duration(&Command::every_ms, {1000, 3'600'000})},
      {"mistakes", "", "", "confusion matrix and worst mistakes of an ended run", on(&Command::mistakes)},
      {"partial", "", "", "the newest state of a FAILED or INTERRUPTED run", on(&Command::partial)},
      {"force", "", "", "overwrite existing files", on(&Command::force)},
      {"follow", "f", "", "continue until the run ends or Ctrl-C", on(&Command::follow)},
      {"node", "", "NODE", "log of this node; else of the node that is asked", text(&Command::node)},
      {"for", "", "STATE", "a state, step=N, or finished (the default)", text(&Command::until)},
      {"timeout", "", "DURATION", "wait at most this long, such as 10m; else forever",
       parsed(&Command::timeout_ms, schema::parse_duration_ms)},
      {"nodes", "", "N", "number of nodes, 1 to 127", whole(&Command::nodes, {1, schema::kMaxMembers})},
      {"link", "", "RATE", "each node's link, such as 1Gbps; else as measured",
       parsed(&Command::link_mbps, parse_link_mbps)},
      {"seconds", "", "S", "seconds per link and direction, 1 to 20; else 3",
       whole(&Command::seconds, {1, schema::kMaxExamineSeconds})},
      {"no-bandwidth", "", "", "do not measure links: disturbs nothing", on(&Command::no_bandwidth)},
      {"compute", "", "DURATION", "compute time of a step, such as 80ms; else as timed",
       parsed(&Command::compute_ms, schema::parse_duration_ms)},
      {"operator", "", "NAME", "make keys for this operator and list them", text(&Command::operator_name)},
      {"read-only", "", "", "the operator may look and fetch, but change nothing", on(&Command::read_only)},
      {"rotate", "", "STEP", "replace the cluster key in steps: add, use, drop",
       word(&Command::rotate, {"add", "use", "drop"})},
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
       "JOB is a file, the name of an installed job, or - for stdin. Prints the run's id on stdout, and a line of "
       "progress on stderr. Ctrl-C detaches and the run continues; a run that has not begun yet is stopped. Exits with "
       "0 when the run is COMPLETED or STOPPED, 5 when it FAILED, 6 when a member could not save it, 10 when it is "
       "INTERRUPTED. A PAUSED run is followed until it continues. --without names a node that is down: the others "
       "begin without it, and it joins the run when it is back.",
       {"set", "without", "id", "detach", "dry-run", "address", "key", "help"}},
      {Verb::kResume,
       "resume",
       "RUN",
       "resume a run that has ended, and follow it",
       {"tgctl resume first", "tgctl resume first --set steps=2000 --detach"},
       "RUN is an id, the beginning of one (if no other run has it), or @last. All nodes must be up, except those that "
       "--without names. They resume from the newest state that all of them have; tgctl status RUN lists the states. "
       "The run keeps its id and its data, and if no member had left it, its result is bit for bit that of a run that "
       "was never interrupted. --set changes steps, the learning rate and some other keys (tgctl help job says which); "
       "with more steps a COMPLETED run is trained further. --any-build is for nodes that have changed since: then "
       "bits may differ. Exit codes are those of start.",
       {"set", "from", "without", "any-build", "detach", "address", "key", "help"}},
      {Verb::kStatus,
       "status",
       "[RUN]",
       "show nodes and runs, or one run and its members",
       {"tgctl status", "tgctl status first --json"},
       "Active runs come first. RUN is an id, the beginning of one, or @last, the newest run. If several match, the "
       "newest active one is shown, else the newest; the same holds for logs and wait, and stderr says which. On a "
       "terminal --watch is a live view; its key ? lists the keys. --check is for health checks: it also prints on "
       "stderr which nodes are not up, and why.",
       {"json", "watch", "check", "address", "key", "help"}},
      {Verb::kStop,
       "stop",
       "RUN",
       "end a run after its current step; its state is kept",
       {"tgctl stop first", "tgctl stop f"},
       "RUN is an id, @last, or the beginning of an id: if several match, the active one. Waits until the run has "
       "ended (60 s) and prints its state. It is no error if the run has already ended. A PAUSED run becomes "
       "INTERRUPTED and keeps its state: the exit code is 10, and tgctl resume continues it when all nodes are back.",
       {"address", "key", "help"}},
      {Verb::kLeave,
       "leave",
       "NODE",
       "remove a node from the active run; the others go on",
       {"tgctl leave node-c", "tgctl leave node-c --address 10.0.0.2:7701"},
       "No step is lost: the node leaves when all members have the same state. Waits until it has left (60 s). Its tgd "
       "keeps running, and stays out of that run until tgctl join, even after a restart. Rebooting a machine needs no "
       "leave: its node rejoins by itself. A tgd of another build cannot rejoin: stop the run to upgrade.",
       {"address", "key", "help"}},
      {Verb::kJoin,
       "join",
       "NODE",
       "let a node that was removed rejoin the run",
       {"tgctl join node-c", "tgctl join node-c --address 10.0.0.2:7701"},
       "Nodes that were lost, restarted or replaced rejoin by themselves; this is for a node that was removed by "
       "leave. It receives the run's state while the others wait briefly.",
       {"address", "key", "help"}},
      {Verb::kFetch,
       "fetch",
       "RUN",
       "get the model and records of an ended run",
       {"tgctl fetch first -o first-model", "tgctl fetch @last -o rescued --partial"},
       "RUN is an id, @last, or the beginning of an id: if several match, the newest that has ended. Checks that all "
       "members agree on the state, then writes model.safetensors (moving average), model-raw.safetensors, "
       "metrics.jsonl, run.json, views.jsonl (who trained which steps), members.json (what each computed with), "
       "model.json (network, preprocessing, classes, accuracy) and predict.py, which runs the model in PyTorch, and "
       "prints their paths.",
       {"output", "partial", "force", "address", "key", "help"},
       "output"},
      {Verb::kReport,
       "report",
       "RUN|DIR",
       "write a page that shows a run: curves, members, data",
       {"tgctl report first -o first.html", "tgctl report @last -o live.html --every 10s"},
       "Writes one self-contained HTML file. RUN may be active: with --every the page is written again until the run "
       "ends, and a browser that shows it reloads it. With --mistakes the asked node, which must be in no run, "
       "evaluates the model of a COMPLETED or STOPPED run again: the page then has a confusion matrix (up to 100 "
       "classes), the most confused classes, and the pictures with the worst mistakes. DIR is a folder that fetch "
       "wrote, which has such a page already: report.html. Prints the file's path.",
       {"page", "every", "mistakes", "force", "address", "key", "help"},
       "page"},
      {Verb::kExport,
       "export",
       "RUN|DIR",
       "write a run's metrics for a spreadsheet or TensorBoard",
       {"tgctl export first --to csv -o first-metrics",
        "tgctl export first-model --to tensorboard -o tensorboard/first"},
       "DIR is a folder that fetch wrote; RUN is an id, @last, or the beginning of an id: if several match, the newest "
       "that has ended. csv: metrics.csv, a line per step and a column per metric. tensorboard: an event file; "
       "tensorboard --logdir tensorboard then shows the runs in the folders there. Prints the file's path.",
       {"to", "output", "force", "address", "key", "help"},
       "to"},
      {Verb::kDelete,
       "delete",
       "RUN",
       "delete an ended run on all nodes",
       {"tgctl delete first", "tgctl delete lenet-20171204-0900-3f2a"},
       "RUN is an id, or the beginning of one (if no other run has it). Its models, metrics and logs are then gone. A "
       "node that does not answer keeps its copy and is named; the exit code is then 1.",
       {"address", "key", "help"}},
      {Verb::kList,
       "list",
       "",
       "list runs: active ones first, then the newest",
       {"tgctl list", "tgctl list --json --address 10.0.0.2:7701"},
       "",
       {"json", "address", "key", "help"}},
      {Verb::kCompare,
       "compare",
       "RUN RUN...",
       "show how runs differ",
       {"tgctl compare first second", "tgctl compare first second -o compared.html"},
       "Prints the job keys that differ, and the results: state, steps, time, loss, accuracy. With -o writes a page "
       "that overlays the curves of up to four runs.",
       {"page", "force", "address", "key", "help"}},
      {Verb::kData,
       "data",
       "show JOB",
       "show what a job would train on",
       {"tgctl data show my.job", "tgctl data show my.job -o samples.html"},
       "Starts nothing; the asked node reads the data as for a start. Prints classes, samples, their shape and the "
       "steps per epoch, and warns of likely mistakes. With -o writes a page of the first training samples as the "
       "network sees them.",
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
       "Exits with 0 when the state is reached, 124 on a timeout, 5 when the run FAILED and 10 when it is INTERRUPTED "
       "(unless that is what it waits for), 1 when the run ended in another way.",
       {"for", "timeout", "address", "key", "help"}},
      {Verb::kDoctor,
       "doctor",
       "",
       "check all nodes and links, and say what to fix",
       {"tgctl doctor", "tgctl doctor --no-bandwidth --json"},
       "Every node checks itself and its links to all others: builds, names and addresses, ports, keys, bandwidth and "
       "packet size, clocks, disk, data, memory and threads. Each problem is named with its fix. A run in progress is "
       "not disturbed. Exits with 0 if no check failed, else with 9.",
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
       {"nodes", "link", "compute", "set", "json", "address", "key", "help"},
       "nodes"},
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
       "make a cluster key file, or an operator's keys",
       {"tgctl keygen cluster.key", "tgctl keygen cluster.key --operator alice"},
       "FILE is the cluster key file. Copy it to every node and name it there: key-file = FILE. Nodes notice within "
       "seconds when it changes. An operator's keys are written to NAME.key in the current folder. To replace the "
       "cluster key while runs go on: --rotate add, copy the file to all nodes; --rotate use, copy; --rotate drop, "
       "copy.",
       {"operator", "read-only", "rotate", "help"}},
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
  const auto row = std::ranges::find(option_rows(), name, &OptionRow::name);
  TG_CHECK(row != option_rows().end(), name);
  return *row;
}

const VerbRow* find_verb(std::string_view name) {
  const auto row = std::ranges::find(verb_rows(), name, &VerbRow::name);
  return row == verb_rows().end() ? nullptr : &*row;
}

const VerbRow& verb_row(Verb verb) {
  const auto row = std::ranges::find(verb_rows(), verb, &VerbRow::verb);
  TG_CHECK(row != verb_rows().end());
  return *row;
}

}  // namespace tg::ctl

#include "ctl/command_line.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <functional>
#include <iterator>
#include <optional>

#include "ctl/plan/link_rate.h"
#include "schema/limits.h"
#include "schema/options.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

namespace po = boost::program_options;

struct OptionRow {
  const char* name;      // "output"
  const char* letter;    // "o" or ""
  const char* argument;  // "DIR", "" for a switch
  const char* help;
  std::function<Status(Command&, const std::string&)> set;
};

struct VerbRow {
  Verb verb;
  const char* name;
  const char* operand;  // "JOB", "RUN", "[RUN]" or ""
  const char* summary;
  const char* examples[2];
  const char* details;
  std::vector<const char*> options;
};

Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

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

Status set_timeout(Command& command, const std::string& value) {
  Result<std::uint64_t> ms = schema::parse_duration_ms(value);
  if (!ms) return ms.error();
  command.timeout_ms = *ms;
  return {};
}

Status add_setting(Command& command, const std::string& value) {
  command.settings.push_back(value);
  return {};
}

Status set_link(Command& command, const std::string& value) {
  const Result<double> mbps = parse_link_mbps(value);
  if (!mbps) return mbps.error();
  command.link_mbps = *mbps;
  return {};
}

template <class Number>
bool read_number(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  return code == std::errc() && stop == end;
}

Status set_nodes(Command& command, const std::string& value) {
  if (read_number(value, command.nodes) && command.nodes >= 1 && command.nodes <= schema::kMostPlannedNodes) return {};
  return usage("\"" + schema::clip_text(value, 100) + "\" is not a number of nodes from 1 to " +
               std::to_string(schema::kMostPlannedNodes));
}

Status set_cores(Command& command, const std::string& value) {
  if (read_number(value, command.cores) && command.cores >= schema::kLeastCores && command.cores <= schema::kMostCores)
    return {};
  return usage("\"" + schema::clip_text(value, 100) +
               "\" is not a number of cores; where nodes share a machine, give each its part, such as 0.5");
}

const std::vector<OptionRow>& option_rows() {
  static const std::vector<OptionRow> rows = {
      {"address", "", "HOST:PORT", "control port of any node; else TGCTL_ADDRESS, else 127.0.0.1:7701",
       text(&Command::address)},
      {"help", "h", "", "print this", nullptr},
      {"set", "", "KEY=VALUE", "set a key of the job over its file; may be repeated", add_setting},
      {"id", "", "ID", "id of the run; else the node draws one", text(&Command::id)},
      {"detach", "d", "", "return as soon as the run is started", on(&Command::detach)},
      {"dry-run", "", "", "validate, measure and predict, but start nothing", on(&Command::dry_run)},
      {"json", "", "", "for programs: stable keys, schema_version 1", on(&Command::json)},
      {"watch", "", "", "again each second, until Ctrl-C", on(&Command::watch)},
      {"output", "o", "DIR", "folder to write to; made if it does not exist", text(&Command::output)},
      {"partial", "", "", "of a FAILED run: the furthest member's last committed state", on(&Command::partial)},
      {"force", "", "", "overwrite files that are there", on(&Command::force)},
      {"follow", "f", "", "go on until the run ends or Ctrl-C", on(&Command::follow)},
      {"node", "", "NAME", "the log of this node; else of the node that is asked", text(&Command::node)},
      {"for", "", "STATE", "a state in any case, finished (the default), or step=N", text(&Command::until)},
      {"timeout", "", "DURATION", "wait at most this long, such as 60s (the default), 10m", set_timeout},
      {"nodes", "", "N", "how many nodes there would be, 1 to 512", set_nodes},
      {"link", "", "RATE", "of each node's link, such as 1Gbps; else as measured", set_link},
      {"cores", "", "C", "processor cores of a node for all it does; else the asked node's", set_cores},
      {"svg", "", "FILE", "also draw throughput over the number of nodes", text(&Command::svg)},
      {"calibrate", "", "FILE", "correct by real steps: what tests/lab/exchange --json printed",
       text(&Command::calibrate)},
  };
  return rows;
}

const std::vector<VerbRow>& verb_rows() {
  static const std::vector<VerbRow> rows = {
      {Verb::kStart,
       "start",
       "JOB",
       "start a run of a job file and follow it",
       {"tgctl start deploy/jobs/lenet-synthetic.job", "tgctl start lenet.job --set steps=200 --id first --detach"},
       "Prints the run's id on stdout, then a line of progress on stderr. Ctrl-C detaches, the run goes on.\n"
       "Ends with 0 when the run is COMPLETED or STOPPED, 5 when it FAILED.\n",
       {"set", "id", "detach", "dry-run", "address", "help"}},
      {Verb::kStatus,
       "status",
       "[RUN]",
       "show nodes and runs, or one run and its members",
       {"tgctl status", "tgctl status first --json"},
       "RUN is an id or a unique beginning of one.\n",
       {"json", "watch", "address", "help"}},
      {Verb::kStop,
       "stop",
       "RUN",
       "end a run after its current step; its state is kept",
       {"tgctl stop first", "tgctl stop f"},
       "Waits until the run has ended (60 s) and prints its state. A run that has ended already is no error.\n",
       {"address", "help"}},
      {Verb::kFetch,
       "fetch",
       "RUN",
       "get the model and records of an ended run",
       {"tgctl fetch first -o first-model", "tgctl fetch first -o rescued --partial"},
       "Checks that all members agree on the state, then writes model.safetensors (moving average),\n"
       "model-raw.safetensors, metrics.jsonl and run.json, and prints their paths.\n",
       {"output", "partial", "force", "address", "help"}},
      {Verb::kList,
       "list",
       "",
       "show the runs, newest first",
       {"tgctl list", "tgctl list --address 10.0.0.2:7701"},
       "",
       {"address", "help"}},
      {Verb::kLogs,
       "logs",
       "RUN",
       "print a run's log",
       {"tgctl logs first", "tgctl logs first -f --node node-b"},
       "",
       {"follow", "node", "address", "help"}},
      {Verb::kWait,
       "wait",
       "RUN",
       "wait until a run reaches a state",
       {"tgctl wait first --for completed --timeout 10m", "tgctl wait first --for step=1000"},
       "Ends with 0 when it is reached, 124 when the time is over, 5 when the run FAILED (unless that was\n"
       "waited for), 1 when it ended otherwise and cannot reach it any more.\n",
       {"for", "timeout", "address", "help"}},
      {Verb::kBench,
       "bench",
       "",
       "measure link, codec and compute of a node, with ratios to their limits",
       {"tgctl bench", "tgctl bench --link 1Gbps --json"},
       "The asked node measures for some seconds and keeps the result for plan; refused while a run is on.\n",
       {"link", "json", "address", "help"}},
      {Verb::kPlan,
       "plan",
       "JOB",
       "predict steps and speed-ups of a job on more nodes, or another link",
       {"tgctl plan deploy/jobs/lenet-synthetic.job --nodes 8 --link 1Gbps",
        "tgctl plan deploy/jobs/alexnet-replay.job --nodes 4 --link 1Gbps --cores 2 --svg plan.svg"},
       "Starts nothing. Predicts from the asked node's bench, which is made first if there is none, for both\n"
       "exchanges and for a float32 ring all-reduce, at N nodes and in a table of 1 to 512.\n",
       {"nodes", "link", "cores", "set", "calibrate", "svg", "json", "address", "help"}},
      {Verb::kVersion,
       "version",
       "",
       "print the versions of tgctl and of the node",
       {"tgctl version", "tgctl --version"},
       "",
       {"address", "help"}},
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

Error unknown_verb(const std::string& name) {
  const std::string near = schema::nearest(name, verb_names());
  return usage("unknown command \"" + schema::clip_text(name, 100) + "\"" +
               (near.empty() ? "; tgctl --help lists them" : "; did you mean " + near + "?"));
}

// What stands before the verb: --address, --help, --version.
struct Leading {
  std::size_t verb_at = 0;  // index in the arguments; their count if there is no verb
  std::optional<std::string> address;
  bool help = false, version = false;
};

Result<Leading> parse_leading(const std::vector<std::string>& arguments) {
  Leading leading;
  std::size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with("-"); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      leading.help = true;
    } else if (argument == "--version") {
      leading.version = true;
    } else if (argument == "--address") {
      if (++i == arguments.size()) return usage("--address needs a value such as 127.0.0.1:7701");
      leading.address = arguments[i];
    } else if (argument.starts_with("--address=")) {
      leading.address = argument.substr(std::string_view("--address=").size());
    } else {
      const std::string near = schema::nearest(argument, {"--help", "--version", "--address"});
      return usage("unknown option " + schema::clip_text(argument, 100) + " before the command" +
                   (near.empty() ? "; tgctl --help shows how" : "; did you mean " + near + "?"));
    }
  }
  leading.verb_at = i;
  return leading;
}

Status apply(Command& command, const VerbRow& verb, const po::option& option) {
  if (option.position_key >= 0) {
    const std::string value = option.value.empty() ? "" : option.value[0];
    if (*verb.operand == '\0')
      return usage(std::string(verb.name) + " takes no \"" + schema::clip_text(value, 100) + "\"");
    if (!command.operand.empty()) {
      return usage(std::string(verb.name) + " takes one " + verb.operand + "; \"" + schema::clip_text(value, 100) +
                   "\" is one too many");
    }
    command.operand = value;
    return {};
  }
  if (option.string_key == "help") {
    command.help = verb_help(verb.verb);
    return {};
  }
  const Status status = option_row(option.string_key).set(command, option.value.empty() ? "" : option.value[0]);
  if (!status) return usage("--" + option.string_key + ": " + status.error().message);
  return {};
}

Status parse_verb(Command& command, const VerbRow& verb, const std::vector<std::string>& arguments) {
  po::options_description description;
  std::vector<std::string> known;
  for (const char* name : verb.options) {
    const OptionRow& row = option_row(name);
    const std::string spelled = std::string(row.name) + (*row.letter == '\0' ? "" : ",") + row.letter;
    if (*row.argument == '\0') {
      description.add_options()(spelled.c_str(), "");
    } else {
      description.add_options()(spelled.c_str(), po::value<std::vector<std::string>>(), "");
    }
    known.push_back("--" + std::string(row.name));
  }
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    for (const po::option& option :
         po::command_line_parser(arguments).options(description).style(style).run().options) {
      if (const Status status = apply(command, verb, option); !status) return status;
    }
  } catch (const po::unknown_option& unknown) {
    const std::string name = unknown.get_option_name();
    const std::string near = schema::nearest(name, known);
    return usage(
        std::string(verb.name) + ": unknown option " + schema::clip_text(name, 100) +
        (near.empty() ? "; tgctl " + std::string(verb.name) + " --help lists them" : "; did you mean " + near + "?"));
  } catch (const po::error& error) {
    return usage(std::string(verb.name) + ": " + error.what());
  }
  return {};
}

Status check(const Command& command, const VerbRow& verb) {
  const std::string operand = verb.operand;
  const std::string example = std::string("; for example: ") + verb.examples[0];
  if (!operand.empty() && operand[0] != '[' && command.operand.empty()) {
    return usage(std::string(verb.name) + " needs a " + operand + example);
  }
  if (verb.verb == Verb::kFetch && command.output.empty()) {
    return usage("fetch needs -o DIR, the folder to write to" + example);
  }
  if (verb.verb == Verb::kPlan && command.nodes == 0) {
    return usage("plan needs --nodes N, how many there would be" + example);
  }
  if (verb.verb == Verb::kStart && !command.id.empty() && !schema::is_run_id(command.id)) {
    return usage(
        "--id \"" + schema::clip_text(command.id, 100) +
        "\": an id has letters, digits, dots, dashes and underscores, begins with a letter or digit, and has at "
        "most 63");
  }
  if (verb.verb == Verb::kLogs && !command.node.empty() && !schema::is_node_name(command.node)) {
    return usage("--node \"" + schema::clip_text(command.node, 100) + "\" is not a node's name");
  }
  const bool names_run = operand == "RUN" || operand == "[RUN]";
  if (names_run && !command.operand.empty() && !schema::is_run_id(command.operand)) {
    return Error{ErrorKind::kNotFound,
                 "no run is named \"" + schema::clip_text(command.operand, 100) + "\"; tgctl list shows them"};
  }
  return {};
}

}  // namespace

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const VerbRow& row : verb_rows()) names.push_back(row.name);
  names.push_back("help");
  return names;
}

std::string general_help() {
  std::string text =
      "  tgctl start deploy/jobs/lenet-synthetic.job\n"
      "  tgctl status --watch\n\n"
      "tgctl starts, watches and ends training runs of a mesh of tgd nodes; it may ask any one of them.\n\n"
      "usage: tgctl [--address HOST:PORT] COMMAND [...]\n\n";
  for (const VerbRow& row : verb_rows()) {
    std::string left = "  " + std::string(row.name) + (*row.operand == '\0' ? "" : " ") + row.operand;
    left.resize(std::max<std::size_t>(left.size(), 16), ' ');
    text += left + row.summary + "\n";
  }
  text +=
      "\nThe node is --address, else TGCTL_ADDRESS, else 127.0.0.1:7701. tgctl COMMAND --help says more.\n"
      "stdout is data, stderr is talk. Exit codes: 0 ok, 1 error, 2 usage or invalid job, 3 daemon unreachable,\n"
      "4 no such run, 5 run failed, 124 wait timed out, 130 interrupted.\n";
  return text;
}

std::string verb_help(Verb verb) {
  const auto& rows = verb_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [verb](const VerbRow& r) { return r.verb == verb; });
  TG_CHECK(row != rows.end());
  std::string text = "  " + std::string(row->examples[0]) + "\n  " + row->examples[1] + "\n\n";
  text += std::string(row->name) + ": " + row->summary + "\n\nusage: tgctl " + row->name;
  text += std::string(*row->operand == '\0' ? "" : " ") + row->operand + " [OPTION]...\n\n";
  for (const char* name : row->options) {
    const OptionRow& option = option_row(name);
    std::string left = *option.letter == '\0' ? "      " : "  -" + std::string(option.letter) + ", ";
    left += "--" + std::string(option.name) + (*option.argument == '\0' ? "" : " ") + option.argument;
    left.resize(std::max<std::size_t>(left.size() + 2, 28), ' ');
    text += left + option.help + "\n";
  }
  if (*row->details != '\0') text += std::string("\n") + row->details;
  return text;
}

Result<Command> parse_command(int argc, const char* const* argv, const char* environment_address) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  Result<Leading> leading = parse_leading(arguments);
  if (!leading) return leading.error();
  Command command;
  if (leading->version) {
    command.version = true;
    return command;
  }
  if (leading->help || leading->verb_at == arguments.size()) {
    if (!leading->help) return usage("no command given\n\n" + general_help());
    command.help = general_help();
    return command;
  }
  std::string name = arguments[leading->verb_at];
  std::vector<std::string> rest(arguments.begin() + static_cast<std::ptrdiff_t>(leading->verb_at) + 1, arguments.end());
  if (name == "help") {
    if (rest.empty()) {
      command.help = general_help();
      return command;
    }
    name = rest[0];
    rest = {"--help"};
  }
  const VerbRow* verb = find_verb(name);
  if (verb == nullptr) return unknown_verb(name);
  command.verb = verb->verb;
  command.address = leading->address.value_or(
      environment_address != nullptr && *environment_address != '\0' ? environment_address : kDefaultAddress);
  if (const Status status = parse_verb(command, *verb, rest); !status) return status.error();
  if (!command.help.empty()) return command;
  if (const Status status = check(command, *verb); !status) return status.error();
  return command;
}

}  // namespace tg::ctl

#include "ctl/command_line/command_line.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <filesystem>
#include <optional>

#include "ctl/command_line/command_table.h"
#include "ctl/command_line/completion.h"
#include "schema/options/job.h"
#include "schema/options/options.h"
#include "schema/options/other_words.h"
#include "schema/options/reference.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kMaxCompared = 16;

// What other programs call it.
constexpr schema::OtherWord kOtherVerbs[] = {
    {"list", "ls runs jobs ps"},
    {"status", "nodes info show"},
    {"status --watch", "top watch"},
    {"doctor", "diagnose"},
    {"status --check", "ping health"},
    {"start", "run submit create train"},
    {"resume", "continue restart recover"},
    {"stop", "cancel kill end abort"},
    {"stop, and tgctl resume later", "pause"},
    {"delete", "rm remove clean"},
    {"list (runs do not queue: one at a time)", "queue"},
    {"fetch", "get download pull cp"},
    {"logs -f", "tail attach"},
    {"fetch (its predict.py runs the model), or plan", "predict"},
    {"fetch (its predict.py runs the model)", "infer"},
    {"fetch (its predict.py --test scores the model)", "evaluate test"},
    {"report", "plot"},
    {"help node", "init config"},
    {"models", "networks model"},
    {"help job", "keys options"},
};

Error unknown_verb(const std::string& name) {
  std::string near = schema::meant_by(name, kOtherVerbs);
  if (near.empty()) near = schema::nearest(name, verb_names());
  return usage("unknown command \"" + schema::clip_text(name, 100) + "\"" +
               (near.empty() ? "; tgctl help lists them" : "; did you mean tgctl " + near + "?"));
}

// What stands before the verb: --address, --key, --help, --version.
struct Leading {
  std::size_t verb_at = 0;  // index in the arguments; their count if there is no verb
  std::optional<std::string> address, key_file;
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
    } else if (argument == "--key") {
      if (++i == arguments.size()) return usage("--key needs a value: an operator's key file");
      leading.key_file = arguments[i];
    } else if (argument.starts_with("--key=")) {
      leading.key_file = argument.substr(std::string_view("--key=").size());
    } else {
      const std::string near = schema::nearest(argument, {"--help", "--version", "--address", "--key"});
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
    if (verb.verb == Verb::kData && !command.shows) {
      if (value != "show") return usage("data: unknown \"" + schema::clip_text(value, 100) + "\"; tgctl data show JOB");
      command.shows = true;
      return {};
    }
    if (!command.operand.empty() && verb.verb == Verb::kCompare) {
      if (command.more_operands.size() + 1 == kMaxCompared)
        return usage("compare shows at most " + std::to_string(kMaxCompared) + " runs at once");
      command.more_operands.push_back(value);
      return {};
    }
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

// What to do instead of an option that the verb does not have.
std::string other_option(const VerbRow& verb, const std::string& name, const std::vector<std::string>& known) {
  std::string word = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  word = word.substr(0, word.find('='));
  const auto is_key = [](const std::string& key) { return schema::find_option(schema::job_options(), key) != nullptr; };
  const std::string key = is_key(word) ? word : schema::job_key_meant(word);
  if (std::ranges::count(known, "--set") > 0 && is_key(key))
    return "; a key of the job is set by --set " + key + "=VALUE";
  const std::string near = schema::nearest(name, known);
  return near.empty() ? "; tgctl " + std::string(verb.name) + " --help lists them" : "; did you mean " + near + "?";
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
    return usage(std::string(verb.name) + ": unknown option " + schema::clip_text(name, 100) +
                 other_option(verb, name, known));
  } catch (const po::error& error) {
    return usage(std::string(verb.name) + ": " + error.what());
  }
  return {};
}

Status check_keygen(const Command& command, const std::string& example) {
  const std::string& name = command.operator_name;
  if (!name.empty() && !schema::is_node_name(name))
    return usage("--operator \"" + schema::clip_text(name, 100) + "\" is not a name: a-z, 0-9, dots and dashes");
  if (name.empty() && command.read_only) return usage("--read-only belongs to --operator" + example);
  if (!name.empty() && !command.rotate.empty()) return usage("--operator and --rotate are two steps" + example);
  return {};
}

Status check_export(const Command& command, const std::string& example) {
  if (command.format.empty()) return usage("export needs --to csv or --to tensorboard" + example);
  if (command.output.empty() || command.output == "-")
    return usage("export needs -o DIR, the folder to write to" + example);
  std::error_code code;
  if (command.operand == kLastRun || schema::is_run_id(command.operand) ||
      std::filesystem::is_directory(command.operand, code))
    return {};
  return Error{ErrorKind::kNotFound, "\"" + schema::clip_text(command.operand, 100) +
                                         "\" is neither a folder nor a run's name; tgctl list shows the runs"};
}

Status check_known(const std::string& operand, const VerbRow& verb, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), operand) != known.end()) return {};
  return usage(std::string(verb.name) + " \"" + schema::clip_text(operand, 100) + "\": it takes one of " +
               schema::joined(known));
}

Status check_run_name(const std::string& name) {
  if (name == kLastRun || schema::is_run_id(name)) return {};
  return Error{ErrorKind::kNotFound, "no run is named \"" + schema::clip_text(name, 100) + "\"; tgctl list shows them"};
}

Status check(const Command& command, const VerbRow& verb) {
  const std::string operand = verb.operand;
  const std::string example = std::string("; for example: ") + verb.examples[0];
  if (!operand.empty() && operand[0] != '[' && command.operand.empty()) {
    const std::string stdin_too = operand == "JOB" ? std::string(", or - for a job on stdin") : "";
    return usage(std::string(verb.name) + " needs a " + operand + stdin_too + example);
  }
  if (verb.verb == Verb::kFetch && command.output.empty()) {
    return usage("fetch needs -o DIR, the folder to write to" + example);
  }
  if (verb.verb == Verb::kFetch && command.output == "-") {
    return usage("fetch -o -: it writes several files and cannot write them to stdout; give a folder" + example);
  }
  if (verb.verb == Verb::kReport && command.output.empty())
    return usage("report needs -o FILE, the page to write" + example);
  if (command.mistakes && command.every_ms > 0)
    return usage("--mistakes is for a run that has ended, --every for one that goes on; give one of them");
  if (verb.verb == Verb::kExport) return check_export(command, example);
  if (verb.verb == Verb::kPlan && command.nodes == 0) {
    return usage("plan needs --nodes N, how many there would be" + example);
  }
  if (verb.verb == Verb::kStart && !command.id.empty() && !schema::is_run_id(command.id)) {
    return usage("--id \"" + schema::clip_text(command.id, 100) + "\": " + schema::run_id_rule());
  }
  if (verb.verb == Verb::kLogs && !command.node.empty() && !schema::is_node_name(command.node)) {
    return usage("--node \"" + schema::clip_text(command.node, 100) + "\" is not a node's name");
  }
  if (operand == "NODE" && !schema::is_node_name(command.operand))
    return usage(std::string(verb.name) + " \"" + schema::clip_text(command.operand, 100) + "\" is not a node's name");
  if (operand == "SHELL") return check_known(command.operand, verb, shells());
  if (operand == "PAGE") return check_known(command.operand, verb, manual_names());
  if (verb.verb == Verb::kKeygen) return check_keygen(command, example);
  if (verb.verb == Verb::kCompare && command.more_operands.empty())
    return usage("compare needs two runs or more" + example);
  for (const std::string& run : command.more_operands)
    if (const Status named = check_run_name(run); !named) return named;
  const bool names_run = operand.find("RUN") != std::string::npos && operand != "RUN|DIR";
  const bool last = command.operand == kLastRun;
  if (last && verb.verb == Verb::kDelete)
    return usage(std::string(kLastRun) + " is not for delete: what is the newest may change; give the run's id");
  return names_run && !command.operand.empty() ? check_run_name(command.operand) : Status();
}

}  // namespace

Result<Command> parse_command(int argc, const char* const* argv, const char* environment_address,
                              const char* environment_key) {
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
    if (name == "job" || name == "node") {
      command.help = name == "job" ? schema::job_reference() : schema::node_reference();
      return command;
    }
  }
  if (name == "complete") {
    command.verb = Verb::kComplete;
    command.words = std::move(rest);
    return command;
  }
  const VerbRow* verb = find_verb(name);
  if (verb == nullptr) return unknown_verb(name);
  command.verb = verb->verb;
  command.address = leading->address.value_or(
      environment_address != nullptr && *environment_address != '\0' ? environment_address : kDefaultAddress);
  command.key_file = leading->key_file.value_or(environment_key != nullptr ? environment_key : "");
  if (const Status status = parse_verb(command, *verb, rest); !status) return status.error();
  if (!command.help.empty()) return command;
  if (const Status status = check(command, *verb); !status) return status.error();
  return command;
}

}  // namespace tg::ctl

#include "ctl/command_line/command_line.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "ctl/command_line/command_table.h"
#include "schema/options/command_words.h"
#include "schema/options/job.h"
#include "schema/options/options.h"
#include "schema/options/reference.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kMaxCompared = 16;

Error unknown_verb(const std::string& name) {
  const std::string near = schema::nearest(name, verb_names());
  return usage("unknown command \"" + schema::clip_text(name, 100) + "\"" +
               (near.empty() ? "; tgctl help lists them" : "; did you mean tgctl " + near + "?"));
}

schema::WordRules make_rules(const std::vector<const char*>& names, std::string place, std::string help) {
  schema::WordRules rules{.options = {}, .place = std::move(place), .help = std::move(help)};
  rules.options.add_options()("version", "");
  for (const char* name : names) {
    const OptionRow& row = option_row(name);
    const std::string spelled = std::string(row.name) + (*row.letter == '\0' ? "" : ",") + row.letter;
    if (*row.argument == '\0')
      rules.options.add_options()(spelled.c_str(), "");
    else if (row.repeated)
      rules.options.add_options()(spelled.c_str(), po::value<std::vector<std::string>>(), "");
    else
      rules.options.add_options()(spelled.c_str(), po::value<std::string>(), "");
  }
  return rules;
}

// The words that are no options, as far as that is known without the command, which is the first of them.
Result<std::vector<std::string>> leading_operands(const std::vector<std::string>& words) {
  const schema::WordRules rules = make_rules({"address", "key", "help"}, "", "tgctl --help");
  std::vector<std::string> found;
  try {
    po::command_line_parser parser(words);
    for (const po::option& option :
         parser.options(rules.options).style(schema::kWordStyle).allow_unregistered().run().options) {
      if (option.unregistered && found.empty()) return schema::unknown_option(option.original_tokens.at(0), rules);
      if (option.position_key >= 0) found.push_back(option.value.at(0));
    }
  } catch (const po::error& error) {
    return usage(error.what());
  }
  return found;
}

// What to do instead of an option that is a key of a job.
std::string job_key_hint(const std::string& word) {
  const bool is_key = schema::find_option(schema::job_options(), word) != nullptr;
  return is_key ? "a key of the job is set by --set " + word + "=VALUE" : "";
}

Status set_operands(Command& command, const VerbRow& verb, std::vector<std::string> words) {
  const std::string name = verb.name;
  const auto quoted = [](const std::string& word) { return "\"" + schema::clip_text(word, 100) + "\""; };
  if (verb.verb == Verb::kData && !words.empty()) {
    if (words[0] != "show") return usage("data: unknown " + quoted(words[0]) + "; tgctl data show JOB");
    words.erase(words.begin());
  }
  if (*verb.operand == '\0' && !words.empty()) return usage(name + " takes no " + quoted(words[0]));
  const std::size_t most = verb.verb == Verb::kCompare ? kMaxCompared : 1;
  if (words.size() > most)
    return usage(most > 1 ? "compare takes at most " + std::to_string(most) + " runs"
                          : name + " takes one " + verb.operand + "; " + quoted(words[1]) + " is one too many");
  if (words.empty()) return {};
  command.operand = words[0];
  command.more_operands.assign(words.begin() + 1, words.end());
  return {};
}

Status parse_verb(Command& command, const VerbRow& verb, const std::vector<std::string>& words) {
  schema::WordRules rules =
      make_rules(verb.options, std::string(verb.name) + ": ", "tgctl " + std::string(verb.name) + " --help");
  if (std::ranges::count(verb.options, std::string_view("set")) > 0) rules.hint = job_key_hint;
  const Result<po::variables_map> given = schema::parse_words(words, rules);
  if (!given) return given.error();
  if (given->contains("help")) command.help = verb_help(verb.verb);
  command.version = given->contains("version");
  if (!command.help.empty() || command.version) return {};
  for (const char* name : verb.options) {
    const OptionRow& row = option_row(name);
    if (!given->contains(name)) continue;
    std::vector<std::string> values{""};
    if (row.repeated)
      values = (*given)[name].as<std::vector<std::string>>();
    else if (*row.argument != '\0')
      values = {(*given)[name].as<std::string>()};
    for (const std::string& value : values)
      if (const Status status = row.set(command, value); !status)
        return usage("--" + std::string(name) + ": " + status.error().message);
  }
  if (const std::string name = verb.required; !name.empty() && !given->contains(name)) {
    const OptionRow& row = option_row(name);
    return usage(std::string(verb.name) + " needs " +
                 (*row.letter == '\0' ? "--" + name : "-" + std::string(row.letter)) + " " + row.argument + ", " +
                 row.help + "; for example: " + verb.examples[0]);
  }
  std::vector<std::string> operands = schema::operands(*given);
  operands.erase(operands.begin());  // the verb
  return set_operands(command, verb, std::move(operands));
}

Status check_keygen(const Command& command, const std::string& example) {
  const std::string& name = command.operator_name;
  if (!name.empty() && !schema::is_node_name(name))
    return usage("--operator \"" + schema::clip_text(name, 100) + "\" is not a name of a-z, 0-9, dots and dashes");
  if (name.empty() && command.read_only) return usage("--read-only goes with --operator" + example);
  if (!name.empty() && !command.rotate.empty()) return usage("give either --operator or --rotate" + example);
  return {};
}

Status check_export(const Command& command, const std::string& example) {
  if (command.output.empty() || command.output == "-")
    return usage("export needs -o DIR, the folder to write to" + example);
  std::error_code code;
  if (command.operand == kLastRun || schema::is_run_id(command.operand) ||
      std::filesystem::is_directory(command.operand, code))
    return {};
  return Error{ErrorKind::kNotFound, "\"" + schema::clip_text(command.operand, 100) +
                                         "\" is neither a folder nor a run's name; tgctl list shows the runs"};
}

Status check_run_name(const std::string& name) {
  if (name == kLastRun || schema::is_run_id(name)) return {};
  return Error{ErrorKind::kNotFound, "no run is named \"" + schema::clip_text(name, 100) + "\"; tgctl list shows them"};
}

Status check(const Command& command, const VerbRow& verb) {
  const std::string operand = verb.operand;
  const std::string example = std::string("; for example: ") + verb.examples[0];
  if (verb.verb == Verb::kCompare && command.more_operands.empty())
    return usage("compare needs two runs or more" + example);
  if (!operand.empty() && operand[0] != '[' && command.operand.empty()) {
    const std::string or_stdin = operand == "JOB" ? ", or - for a job on stdin" : "";
    return usage(std::string(verb.name) + " needs a " + operand.substr(operand.rfind(' ') + 1) + or_stdin + example);
  }
  if (verb.verb == Verb::kFetch && command.output == "-")
    return usage("fetch writes several files and cannot write them to stdout; give a folder" + example);
  if (command.mistakes && command.every_ms > 0)
    return usage("--mistakes is for a run that has ended, --every for an active one; give one of them");
  if (verb.verb == Verb::kExport) return check_export(command, example);
  if (verb.verb == Verb::kStart && !command.id.empty() && !schema::is_run_id(command.id))
    return usage("--id \"" + schema::clip_text(command.id, 100) + "\": " + schema::run_id_rule());
  if (verb.verb == Verb::kLogs && !command.node.empty() && !schema::is_node_name(command.node))
    return usage("--node \"" + schema::clip_text(command.node, 100) + "\" is not a node's name");
  if (operand == "NODE" && !schema::is_node_name(command.operand))
    return usage(std::string(verb.name) + " \"" + schema::clip_text(command.operand, 100) + "\" is not a node's name");
  if (verb.verb == Verb::kKeygen) return check_keygen(command, example);
  for (const std::string& run : command.more_operands)
    if (const Status named = check_run_name(run); !named) return named;
  const bool names_run = operand.find("RUN") != std::string::npos && operand != "RUN|DIR";
  if (command.operand == kLastRun && verb.verb == Verb::kDelete)
    return usage("delete does not take " + std::string(kLastRun) + ", because the newest run may change; give an id");
  return names_run && !command.operand.empty() ? check_run_name(command.operand) : Status();
}

}  // namespace

Result<Command> parse_command(int argc, const char* const* argv, const char* environment_address,
                              const char* environment_key) {
  std::vector<std::string> words = schema::words_after(argc, argv, 1);
  const Result<std::vector<std::string>> leading = leading_operands(words);
  if (!leading) return leading.error();
  Command command;
  command.address = environment_address != nullptr ? environment_address : "";
  command.key_file = environment_key != nullptr ? environment_key : "";
  std::string name = leading->empty() ? "" : leading->front();
  if (name == "help" && leading->size() > 1) {
    name = leading->at(1);
    if (name == "job") command.help = schema::job_reference();
    if (name == "node") command.help = schema::node_reference();
    if (name == "all") command.help = whole_help();
    words = {name, "--help"};
  } else if (name == "help") {
    command.help = general_help();
  } else if (name.empty()) {
    const auto has = [&words](const char* word) { return std::ranges::count(words, word) > 0; };
    command.version = has("--version");
    if (has("--help") || has("-h")) command.help = general_help();
    if (command.help.empty() && !command.version) return usage("no command given\n\n" + general_help());
  }
  if (!command.help.empty() || command.version) return command;
  const VerbRow* verb = find_verb(name);
  if (verb == nullptr) return unknown_verb(name);
  command.verb = verb->verb;
  if (const Status status = parse_verb(command, *verb, words); !status) return status.error();
  if (!command.help.empty() || command.version) return command;
  if (const Status status = check(command, *verb); !status) return status.error();
  return command;
}

}  // namespace tg::ctl

// What --help says, made of the table.
#include <algorithm>

#include "ctl/command_line/command_table.h"
#include "ctl/exit_code.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kColumns = 80;

std::string wrapped(const std::string& paragraph) {
  std::string text;
  for (const std::string& line : schema::wrap_text(paragraph, kColumns)) text += line + "\n";
  return text;
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
      "  $ tgctl start deploy/jobs/lenet-synthetic.job\n"
      "  $ tgctl status --watch\n\n"
      "tgctl starts, watches and ends training runs of a mesh of tgd nodes. It asks one\n"
      "node, any of them, and the answer covers all.\n\n"
      "Usage: tgctl [--address HOST:PORT] [--key FILE] COMMAND [ARGUMENT]...\n\n";
  const auto add = [&text](std::string left, const char* summary) {
    left.resize(std::max<std::size_t>(left.size() + 2, 20), ' ');
    text += "  " + left + summary + "\n";
  };
  for (const VerbRow& row : verb_rows())
    add(std::string(row.name) + (*row.operand == '\0' ? "" : " ") + row.operand, row.summary);
  add("help COMMAND", "explain one of these commands");
  add("help job", "explain all keys of a job file");
  add("help node", "explain all keys of a node's configuration");
  const std::string codes = schema::joined(
      kExitMeanings, ", ", [](const ExitMeaning& row) { return std::to_string(row.code) + " " + row.meaning; });
  return text + "\n" +
         wrapped(
             "The node to ask is --address, else TGCTL_ADDRESS, else 127.0.0.1:7701 or, where nothing listens there, "
             "the local socket of the tgd of this machine; a path is a node's local socket. "
             "Results go to stdout, messages to stderr. Exit codes: " +
             codes + ".");
}

std::string verb_help(Verb verb) {
  const VerbRow& row = verb_row(verb);
  std::string text = "  $ " + std::string(row.examples[0]) + "\n  $ " + row.examples[1] + "\n\n";
  text += std::string(row.name) + ": " + row.summary + "\n\nUsage: tgctl " + row.name;
  text += std::string(*row.operand == '\0' ? "" : " ") + row.operand + " [OPTION]...\n\n";
  for (const char* name : row.options) {
    const OptionRow& option = option_row(name);
    std::string left = *option.letter == '\0' ? "      " : "  -" + std::string(option.letter) + ", ";
    left += "--" + std::string(option.name) + (*option.argument == '\0' ? "" : " ") + option.argument;
    left.resize(std::max<std::size_t>(left.size() + 2, 28), ' ');
    text += left + option.help + "\n";
  }
  if (*row.details != '\0') text += "\n" + wrapped(row.details);
  return text;
}

// *TITLE* is a section to help2man.
std::string whole_help() {
  std::string text = general_help();
  for (const VerbRow& row : verb_rows()) text += "\n*tgctl " + std::string(row.name) + "*\n\n" + verb_help(row.verb);
  return text;
}

}  // namespace tg::ctl

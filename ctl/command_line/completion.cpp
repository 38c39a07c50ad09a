#include "ctl/command_line/completion.h"

#include <algorithm>
#include <string_view>

#include "ctl/command_line/command_line.h"
#include "ctl/command_line/command_table.h"
#include "kernels/base/words.h"
#include "schema/control/control.h"
#include "schema/options/job.h"
#include "schema/options/node_config.h"

namespace tg::ctl {
namespace {

// "a | b | c" as its words.
std::vector<std::string> words_in(std::string_view allowed) {
  std::vector<std::string> words;
  while (!allowed.empty()) {
    const std::size_t bar = std::min(allowed.find(" | "), allowed.size());
    words.emplace_back(allowed.substr(0, bar));
    allowed.remove_prefix(std::min(bar + 3, allowed.size()));
  }
  return words;
}

void add(Completion& completion, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    if (word.starts_with(completion.begun)) completion.words.push_back(word);
}

template <class Target>
void add_value(Completion& completion, const schema::Option<Target>* row) {
  if (row == nullptr) return;
  if (row->form == "path") completion.place = Place::kFile;
  add(completion, words_in(row->allowed));
}

void add_setting(Completion& completion, Verb verb) {
  const std::size_t equals = completion.begun.find('=');
  if (equals != std::string::npos) {
    const std::string key = completion.begun.substr(0, equals);
    completion.begun.erase(0, equals + 1);
    return add_value(completion, schema::find_option(schema::job_options(), key));
  }
  for (const schema::Option<schema::JobSpec>& row : schema::job_options())
    if (verb != Verb::kResume || row.resumable) add(completion, {row.name + "="});
}

// Adds candidates for the argument of one of tgctl's options.
void add_argument(Completion& completion, const OptionRow& option, Verb verb) {
  const std::string_view argument = option.argument;
  if (argument == "KEY=VALUE") return add_setting(completion, verb);
  if (argument == "FILE") completion.place = Place::kFile;
  if (argument == "DIR") completion.place = Place::kFolder;
  if (argument == "NODE") completion.place = Place::kNode;
  if (argument == "STATE") {
    add(completion, {"finished", "step="});
    for (const std::string_view state : words_of(schema::RunState())) add(completion, {std::string(state)});
  }
  if (argument == "FORMAT") add(completion, {"csv", "tensorboard"});
  if (argument == "STEP" && verb == Verb::kKeygen) add(completion, {"add", "use", "drop"});
}

bool takes_several(Verb verb) { return verb == Verb::kCompare || verb == Verb::kData; }

void add_operand(Completion& completion, const VerbRow& verb) {
  const std::string_view operand = verb.operand;
  if (operand == "JOB") completion.place = Place::kJob;
  if (operand == "show JOB") {
    completion.place = Place::kJob;
    add(completion, {"show"});
  }
  if (operand.find("RUN") != operand.npos) {
    completion.place = operand == "RUN|DIR" ? Place::kRunOrFolder : Place::kRun;
    // Not to whoever has typed nothing: where there is one run, Tab is to complete its id.
    if (verb.verb != Verb::kDelete && !completion.begun.empty()) add(completion, {kLastRun});
  }
  if (operand == "NODE") completion.place = Place::kNode;
  if (operand == "FILE") completion.place = Place::kFile;
  if (operand == "SHELL") add(completion, shells());
  if (operand == "PAGE") add(completion, manual_names());
}

const OptionRow* find_of(const std::vector<const char*>& options, std::string_view word) {
  for (const char* name : options) {
    const OptionRow& row = option_row(name);
    if (word == "--" + std::string(row.name) || (*row.letter != '\0' && word == "-" + std::string(row.letter)))
      return &row;
  }
  return nullptr;
}

// Goes along the words of tgctl: which verb, how many operands, and whether an option waits for its argument.
struct Walk {
  const VerbRow* verb = nullptr;
  bool help = false;
  std::size_t operands = 0;
  const OptionRow* waiting = nullptr;
};

const std::vector<const char*>& options_at(const Walk& walk) {
  static const std::vector<const char*> leading{"address", "key", "help"};
  return walk.verb == nullptr ? leading : walk.verb->options;
}

void note(Completion& completion, const OptionRow& option, const std::string& value) {
  if (std::string_view(option.name) == "address") completion.address = value;
  if (std::string_view(option.name) == "key") completion.key_file = value;
}

void pass(Walk& walk, Completion& completion, const std::string& word) {
  if (walk.waiting != nullptr) {
    note(completion, *walk.waiting, word);
    walk.waiting = nullptr;
    return;
  }
  if (word.starts_with('-')) {
    const std::size_t equals = word.find('=');
    const OptionRow* option = find_of(options_at(walk), word.substr(0, equals));
    if (option == nullptr || *option->argument == '\0') return;
    if (equals == std::string::npos) {
      walk.waiting = option;
    } else {
      note(completion, *option, word.substr(equals + 1));
    }
  } else if (walk.verb != nullptr || walk.help) {
    ++walk.operands;
  } else {
    walk.verb = find_verb(word);
    walk.help = word == "help";
  }
}

void complete_tgctl(Completion& completion, const std::vector<std::string>& words) {
  Walk walk;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) pass(walk, completion, words[i]);
  if (walk.waiting != nullptr)
    return add_argument(completion, *walk.waiting, walk.verb == nullptr ? Verb::kComplete : walk.verb->verb);
  const std::string& begun = completion.begun;
  if (const std::size_t equals = begun.find('='); begun.starts_with("--") && equals != std::string::npos) {
    const OptionRow* option = find_of(options_at(walk), begun.substr(0, equals));
    completion.begun.erase(0, equals + 1);
    if (option != nullptr) add_argument(completion, *option, walk.verb == nullptr ? Verb::kComplete : walk.verb->verb);
  } else if (begun.starts_with('-')) {
    for (const char* name : options_at(walk)) add(completion, {"--" + std::string(name)});
    if (walk.verb == nullptr) add(completion, {"--version"});
  } else if (walk.operands > 0 && !(walk.verb != nullptr && takes_several(walk.verb->verb))) {
    return;
  } else if (walk.help) {
    add(completion, verb_names());
    add(completion, {"job", "node"});
  } else if (walk.verb == nullptr) {
    add(completion, verb_names());
  } else {
    add_operand(completion, *walk.verb);
  }
}

void complete_tgd(Completion& completion, const std::vector<std::string>& words) {
  std::string option = words.size() > 1 ? words[words.size() - 2] : "";
  const std::string& begun = completion.begun;
  if (const std::size_t equals = begun.find('='); begun.starts_with("--") && equals != std::string::npos) {
    option = begun.substr(0, equals);
    completion.begun.erase(0, equals + 1);
  } else if (begun.starts_with('-')) {
    for (const schema::ProgramOption& row : schema::program_options()) add(completion, {"--" + std::string(row.name)});
    for (const schema::Option<schema::NodeConfig>& row : schema::node_options()) add(completion, {"--" + row.name});
    return;
  }
  if (option == "--config" || option == "-c") completion.place = Place::kFile;
  if (option.starts_with("--")) add_value(completion, schema::find_option(schema::node_options(), option.substr(2)));
}

}  // namespace

Completion complete(const std::string& program, const std::vector<std::string>& words) {
  Completion completion;
  completion.begun = words.empty() ? "" : words.back();
  if (program == "tgctl") complete_tgctl(completion, words);
  if (program == "tgd") complete_tgd(completion, words);
  return completion;
}

}  // namespace tg::ctl

// The table of verbs and options that parsing, help and suggestions come from. Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/command_line/command_line.h"

namespace tg::ctl {

struct OptionRow {
  const char* name;      // "output"
  const char* letter;    // "o" or ""
  const char* argument;  // "DIR", "" for a switch
  const char* help;
  std::function<Status(Command&, const std::string&)> set;
  bool repeated = false;  // may be given more than once
};

struct VerbRow {
  Verb verb;
  const char* name;
  const char* operand;  // "JOB", "RUN", "[RUN]", "RUN RUN..." or ""
  const char* summary;
  const char* examples[2];
  const char* details;
  std::vector<const char*> options;
  const char* required = "";  // the option that must be given
};

inline Error usage(std::string message) { return {ErrorKind::kUsage, std::move(message)}; }

const std::vector<VerbRow>& verb_rows();
const VerbRow* find_verb(std::string_view name);  // null if there is none
const VerbRow& verb_row(Verb verb);
const OptionRow& option_row(std::string_view name);  // one that a verb names

}  // namespace tg::ctl

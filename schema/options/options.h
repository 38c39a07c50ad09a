// One table of options per program or file: name, default, unit, help and where the value goes. The command line,
// `key = value` files, TGD_* environment variables and --help all come from it (Boost.Program_options does the
// parsing). Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::schema {

template <class Target>
struct Option {
  std::string name;  // "peer-timeout"
  std::string form;  // form of a value that is not one of the words: "number from 0 to 1"
  std::string help;  // one sentence with unit and why
  std::function<Status(Target&, const std::string&)> set;
  std::function<std::string(const Target&)> get;  // canonical text, "" = not set
  std::string allowed = {};                       // "direct | sharded | auto", for messages and help
  bool repeated = false;                          // may be given more than once (peer)
  bool resumable = false;                         // a resume may change it (keys of jobs)
  std::string group = {};                         // heading in the reference; rows of a group follow each other
};

// The option of this name; null if there is none.
template <class Target>
const Option<Target>* find_option(const std::vector<Option<Target>>& table, std::string_view name) {
  for (const Option<Target>& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

struct Assignment {
  std::string key, value;
  int line = 0;
};
// Splits `key = value` text (# comments); errors name the file and the line.
Result<std::vector<Assignment>> parse_assignments(std::string_view text, std::string_view file);
// The known name closest to a misspelt one, "" if none is close.
std::string nearest(std::string_view word, const std::vector<std::string>& known);
// "VALUE" is not what was expected.
Error bad_value(std::string_view value, const std::string& expected);
// Milliseconds of "10s", "500ms", "2m".
Result<std::uint64_t> parse_duration_ms(std::string_view text);
std::string format_duration(std::uint64_t ms);

}  // namespace tg::schema

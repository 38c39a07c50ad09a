// The words of a command line, as Boost.Program_options reads them. What it throws becomes a usage error that says what
// to do next. For .cpp files alone: Boost's header takes long to compile. Pure; any thread.
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::schema {

// What follows argv[0], or the command in argv[1].
std::vector<std::string> words_after(int argc, const char* const* argv, int skipped);

struct WordRules {
  boost::program_options::options_description options;
  std::string place;  // before each error: "simulate: "
  std::string help;   // the command that lists the options: "tgd --help"
  // A clause about an unknown option (without dashes and value) that is more to the point than its neighbours' names.
  std::function<std::string(const std::string&)> hint = {};
};

// The options that are given, and the other words under "operand" (operands()).
Result<boost::program_options::variables_map> parse_words(const std::vector<std::string>& words,
                                                          const WordRules& rules);
std::vector<std::string> operands(const boost::program_options::variables_map& given);

// The style of all our command lines: as getopt_long, but an option's name may not be cut short.
inline constexpr int kWordStyle = boost::program_options::command_line_style::unix_style &
                                  ~boost::program_options::command_line_style::allow_guessing;

// "unknown option --adress; did you mean --address?"
Error unknown_option(const std::string& name, const WordRules& rules);

}  // namespace tg::schema

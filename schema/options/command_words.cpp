#include "schema/options/command_words.h"

#include <algorithm>
#include <utility>

#include "schema/limits.h"
#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;

constexpr const char* kOperands = "operand";

}  // namespace

std::vector<std::string> words_after(int argc, const char* const* argv, int skipped) {
  return {argv + std::min(argc, skipped), argv + argc};
}

Error unknown_option(const std::string& name, const WordRules& rules) {
  std::string word = name.substr(std::min(name.find_first_not_of('-'), name.size()));
  word = word.substr(0, word.find('='));
  std::string hint = rules.hint ? rules.hint(word) : "";
  if (hint.empty()) {
    std::vector<std::string> known;
    for (const auto& option : rules.options.options()) known.push_back(option->long_name());
    const std::string near = nearest(word, known);
    hint = near.empty() ? rules.help + " lists them" : "did you mean --" + near + "?";
  }
  return {ErrorKind::kUsage, rules.place + "unknown option " + clip_text(name, 100) + "; " + hint};
}

Result<po::variables_map> parse_words(const std::vector<std::string>& words, const WordRules& rules) {
  po::options_description all;
  all.add(rules.options).add_options()(kOperands, po::value<std::vector<std::string>>(), "");
  po::positional_options_description positional;
  positional.add(kOperands, -1);
  try {
    po::variables_map given;
    const po::parsed_options parsed =
        po::command_line_parser(words).options(all).positional(positional).style(kWordStyle).run();
    for (const po::option& one : parsed.options) {  // Boost takes -1 for the largest number
      const po::option_description* known = all.find_nothrow(one.string_key, false);
      const bool number = known && dynamic_cast<const po::typed_value<std::uint64_t>*>(known->semantic().get());
      if (number && !one.value.empty() && one.value.front().starts_with('-'))
        return Error{ErrorKind::kUsage, rules.place + "--" + one.string_key + " takes a whole number from 0"};
    }
    po::store(parsed, given);
    return given;
  } catch (const po::unknown_option& unknown) {
    return unknown_option(unknown.get_option_name(), rules);
  } catch (const po::error& error) {
    return Error{ErrorKind::kUsage, rules.place + clip_text(error.what(), kMaxReasonBytes)};
  }
}

std::vector<std::string> operands(const po::variables_map& given) {
  return given.contains(kOperands) ? given[kOperands].as<std::vector<std::string>>() : std::vector<std::string>();
}

}  // namespace tg::schema

// Rows of an option table by kind of value, so that the errors of `set` and the canonical text of `get` are the same
// for every option of a kind. Used in this folder only. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/utf8.h"
#include "kernels/base/words.h"
#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::schema {

// Printable UTF-8, without # (which starts a comment) and outer spaces: every such value survives a file.
inline Status check_text(const std::string& value, std::size_t most_bytes) {
  if (!is_utf8(value)) return bad_value(value, "UTF-8; write it so, or rename the folder or file");
  const bool padded = !value.empty() && (value.front() == ' ' || value.back() == ' ');
  if (value.size() <= most_bytes && is_printable(value) && value.find('#') == std::string::npos && !padded) return {};
  return bad_value(value, "a text of at most " + std::to_string(most_bytes) + " printable bytes without #");
}

// A folder or file: check_text, and no path that needs a shell to be expanded.
inline Status check_path(const std::string& value, std::size_t most_bytes) {
  if (const Status status = check_text(value, most_bytes); !status) return status;
  if (!value.starts_with('~') && !value.starts_with('$')) return {};
  return bad_value(value, std::string("a path: ") + (value[0] == '~' ? "~ is" : "variables are") +
                              " not expanded here; write an absolute path, such as /home/NAME/mnist");
}

// What all rows of one field are: `parse` says what is wrong with a text, `format` writes the canonical one.
template <class Target, class Value, class Parse, class Format>
Option<Target> value_row(std::string name, Value Target::*field, std::string form, std::string help, Parse parse,
                         Format format) {
  const auto set = [field, parse](Target& target, const std::string& text) -> Status {
    Result<Value> value = parse(text);
    if (!value) return value.error();
    target.*field = *std::move(value);
    return {};
  };
  return {std::move(name), std::move(form), std::move(help), set,
          [field, format](const Target& target) { return format(target.*field); }};
}

// check: check_text or check_path.
template <class Target>
Option<Target> string_row(std::string name, std::string Target::*field, std::size_t most_bytes, std::string form,
                          std::string help, Status (*check)(const std::string&, std::size_t)) {
  const auto parse = [=](const std::string& value) -> Result<std::string> {
    if (const Status status = check(value, most_bytes); !status) return status.error();
    return value;
  };
  return value_row(std::move(name), field, std::move(form), std::move(help), parse,
                   [](const std::string& value) { return value; });
}
template <class Target>
Option<Target> text_row(std::string name, std::string Target::*field, std::size_t most_bytes, std::string help) {
  return string_row(std::move(name), field, most_bytes, "text", std::move(help), check_text);
}
template <class Target>
Option<Target> path_row(std::string name, std::string Target::*field, std::size_t most_bytes, std::string help) {
  return string_row(std::move(name), field, most_bytes, "path", std::move(help), check_path);
}

// One of a few words. `write` gets the index of the word in the text, `read` returns that of the present value.
template <class Target, class Write, class Read>
Option<Target> word_row(std::string name, const std::vector<std::string>& known, std::string help, Write write,
                        Read read) {
  const std::string allowed = joined(known, " | ");
  const auto set = [known, write, allowed](Target& target, const std::string& value) -> Status {
    const auto found = std::find(known.begin(), known.end(), value);
    if (found == known.end())
      return bad_value(value, known.size() == 1 ? allowed + ", the only value" : "one of " + allowed);
    write(target, static_cast<std::size_t>(found - known.begin()));
    return {};
  };
  return {
      std::move(name), "", std::move(help), set, [known, read](const Target& target) { return known[read(target)]; },
      allowed};
}

// The words of an enum (kernels/base/words.h).
template <class Target, class Enum>
requires std::is_enum_v<Enum> Option<Target> choice_row(std::string name, Enum Target::*field, std::string help) {
  constexpr auto kWords = words_of(Enum());
  return word_row<Target>(
      std::move(name), {kWords.begin(), kWords.end()}, std::move(help),
      [field](Target& target, std::size_t index) { target.*field = static_cast<Enum>(index); },
      [field](const Target& target) { return static_cast<std::size_t>(target.*field); });
}

// As the row above, with "auto" as the first word, which means nullopt.
template <class Target, class Enum>
Option<Target> choice_row(std::string name, std::optional<Enum> Target::*field, std::string help) {
  constexpr auto kWords = words_of(Enum());
  std::vector<std::string> known{"auto"};
  known.insert(known.end(), kWords.begin(), kWords.end());
  return word_row<Target>(
      std::move(name), known, std::move(help),
      [field](Target& target, std::size_t index) {
        target.*field = index == 0 ? std::nullopt : std::optional(static_cast<Enum>(index - 1));
      },
      [field](const Target& target) { return target.*field ? static_cast<std::size_t>(*(target.*field)) + 1 : 0; });
}

struct WholeRange {
  std::uint64_t least = 0;
  std::uint64_t most = UINT64_MAX;
};

template <class Target>
Option<Target> whole_row(std::string name, std::uint64_t Target::*field, WholeRange range, std::string help) {
  const std::string form = "whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most);
  const auto parse = [range, form](const std::string& value) -> Result<std::uint64_t> {
    const auto number = parse_number<std::uint64_t>(value);
    if (!number || *number < range.least || *number > range.most) return bad_value(value, "a " + form);
    return *number;
  };
  return value_row(std::move(name), field, form, std::move(help), parse,
                   [](std::uint64_t value) { return std::to_string(value); });
}

// Shortest text that reads back as the same double.
inline std::string format_real(double value) {
  char text[32];
  const auto [end, code] = std::to_chars(text, text + sizeof text, value);
  return code == std::errc() ? std::string(text, end) : std::string("nan");
}

struct RealRange {
  double least = 0;
  double most = 1e30;
  bool least_excluded = false;
  bool most_excluded = false;
};

template <class Target>
Option<Target> real_row(std::string name, double Target::*field, RealRange range, std::string help) {
  const std::string form = std::string("number ") + (range.least_excluded ? "above " : "from ") +
                           format_real(range.least) + (range.most_excluded ? " to below " : " to ") +
                           format_real(range.most);
  const auto parse = [range, form](const std::string& value) -> Result<double> {
    const double number = parse_number<double>(value).value_or(NAN);
    const bool above = range.least_excluded ? number > range.least : number >= range.least;
    const bool below = range.most_excluded ? number < range.most : number <= range.most;
    const bool comma = value.find(',') != std::string::npos;
    if (!std::isfinite(number) || !above || !below)
      return bad_value(value, "a " + form + (comma ? "; decimals are written with a point" : ""));
    return number;
  };
  return value_row(std::move(name), field, form, std::move(help), parse, format_real);
}

// Values separated by commas, each read and written by `one`; the field of `one` itself is not used.
template <class Target, class Value>
Option<Target> list_row(std::string name, std::vector<Value> Target::*field, Option<Target> one, Value Target::*of_one,
                        std::size_t most, std::string form, std::string help) {
  const auto parse = [one, of_one, most](const std::string& value) -> Result<std::vector<Value>> {
    std::vector<Value> values;
    for (std::size_t at = 0; at <= value.size() && !value.empty();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      const std::size_t first = std::min(value.find_first_not_of(' ', at), comma);
      Target tried;
      if (const Status status = one.set(tried, value.substr(first, comma - first)); !status) return status.error();
      values.push_back(tried.*of_one);
      if (values.size() > most) return bad_value(value, "a list of at most " + std::to_string(most) + " values");
      at = comma + 1;
    }
    return values;
  };
  const auto format = [one, of_one](const std::vector<Value>& values) {
    std::string text;
    for (const Value& value : values) {
      Target tried;
      tried.*of_one = value;
      text += (text.empty() ? "" : ",") + one.get(tried);
    }
    return text;
  };
  return value_row(std::move(name), field, std::move(form), std::move(help), parse, format);
}

template <class Target>
Option<Target> duration_row(std::string name, std::uint64_t Target::*field, WholeRange range_ms, std::string help) {
  const std::string form = "duration from " + format_duration(range_ms.least) + " to " + format_duration(range_ms.most);
  const auto parse = [range_ms, form](const std::string& value) -> Result<std::uint64_t> {
    const Result<std::uint64_t> ms = parse_duration_ms(value);
    if (ms && (*ms < range_ms.least || *ms > range_ms.most)) return bad_value(value, "a " + form);
    return ms;
  };
  return value_row(std::move(name), field, form, std::move(help), parse, format_duration);
}

template <class Target>
Option<Target> flag_row(std::string name, bool Target::*field, std::string help) {
  const auto parse = [](const std::string& value) -> Result<bool> {
    if (value != "true" && value != "false") return bad_value(value, "true or false");
    return value == "true";
  };
  Option<Target> row = value_row(std::move(name), field, "", std::move(help), parse,
                                 [](bool value) { return std::string(value ? "true" : "false"); });
  row.allowed = "true | false";
  return row;
}

// "unknown key "stepz"; did you mean "steps"? tgctl help job explains all keys", to follow the place. hint: a clause
// that is more to the point than the nearest key, or "". page: the command that prints the reference.
template <class Target>
std::string unknown_key(const std::vector<Option<Target>>& table, std::string_view name, std::string hint,
                        const std::string& page) {
  std::vector<std::string> known;
  for (const Option<Target>& row : table) known.push_back(row.name);
  const std::string near = nearest(name, known);
  if (hint.empty() && !near.empty()) hint = "did you mean \"" + near + "\"?";
  return "unknown key \"" + clip_text(name, 100) + "\"; " + hint +
         (hint.empty()          ? ""
          : hint.ends_with('?') ? " "
                                : "; ") +
         page + " explains all keys";
}

}  // namespace tg::schema

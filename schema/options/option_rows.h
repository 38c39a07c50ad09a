// Rows of an option table by kind of value, so that the errors of `set` and the canonical text of `get` are the same
// for every option of a kind. Used in this folder only. Pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/words.h"
#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::schema {

inline Error bad_value(std::string_view value, const std::string& expected) {
  return {ErrorKind::kUsage, "\"" + clip_text(value, 100) + "\" is not " + expected};
}

// Printable, without # (which starts a comment) and outer spaces: every such value survives a file.
inline Status check_text(const std::string& value, std::size_t most_bytes) {
  const bool padded = !value.empty() && (value.front() == ' ' || value.back() == ' ');
  if (value.size() <= most_bytes && is_printable(value) && value.find('#') == std::string::npos && !padded) return {};
  return bad_value(value, "a text of at most " + std::to_string(most_bytes) + " printable bytes without #");
}

// A folder or file: as check_text, and paths that only a shell understands are refused.
inline Status check_path(const std::string& value, std::size_t most_bytes) {
  if (const Status status = check_text(value, most_bytes); !status) return status;
  if (!value.starts_with('~') && !value.starts_with('$')) return {};
  return bad_value(value, std::string("a path: nobody expands ") + (value[0] == '~' ? "~" : "variables") +
                              " here; write it from / on, such as /home/NAME/mnist");
}

template <class Target>
Option<Target> text_row(std::string name, std::string Target::*field, std::size_t most_bytes, std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.form = "text";
  row.set = [field, most_bytes](Target& target, const std::string& value) -> Status {
    if (const Status status = check_text(value, most_bytes); !status) return status;
    target.*field = value;
    return {};
  };
  row.get = [field](const Target& target) { return target.*field; };
  return row;
}

template <class Target>
Option<Target> path_row(std::string name, std::string Target::*field, std::size_t most_bytes, std::string help) {
  Option<Target> row = text_row(std::move(name), field, most_bytes, std::move(help));
  row.form = "path";
  row.set = [field, most_bytes](Target& target, const std::string& value) -> Status {
    if (const Status status = check_path(value, most_bytes); !status) return status;
    target.*field = value;
    return {};
  };
  return row;
}

// One of a few words. `write` gets the index of the word in the text, `read` returns that of the present value.
template <class Target, class Write, class Read>
Option<Target> word_row(std::string name, const std::vector<std::string>& known, std::string help, Write write,
                        Read read) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  for (const std::string& word : known) row.allowed += (row.allowed.empty() ? "" : " | ") + word;
  row.set = [known, write, allowed = row.allowed](Target& target, const std::string& value) -> Status {
    const auto found = std::find(known.begin(), known.end(), value);
    if (found == known.end()) {
      const std::string near = nearest(value, known);
      return bad_value(value, "one of " + allowed + (near.empty() ? "" : "; did you mean " + near + "?"));
    }
    write(target, static_cast<std::size_t>(found - known.begin()));
    return {};
  };
  row.get = [known, read](const Target& target) { return known[read(target)]; };
  return row;
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
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.form = "whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most);
  row.set = [field, range, form = row.form](Target& target, const std::string& value) -> Status {
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, code] = std::from_chars(value.data(), end, number);
    if (code != std::errc() || stop != end || number < range.least || number > range.most)
      return bad_value(value, "a " + form);
    target.*field = number;
    return {};
  };
  row.get = [field](const Target& target) { return std::to_string(target.*field); };
  return row;
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
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.form = std::string("number ") + (range.least_excluded ? "above " : "from ") + format_real(range.least) +
             (range.most_excluded ? " to below " : " to ") + format_real(range.most);
  row.set = [field, range, form = row.form](Target& target, const std::string& value) -> Status {
    double number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, code] = std::from_chars(value.data(), end, number);
    const bool above = range.least_excluded ? number > range.least : number >= range.least;
    const bool below = range.most_excluded ? number < range.most : number <= range.most;
    if (code != std::errc() || stop != end || !std::isfinite(number) || !above || !below)
      return bad_value(value, "a " + form);
    target.*field = number;
    return {};
  };
  row.get = [field](const Target& target) { return format_real(target.*field); };
  return row;
}

// Values separated by commas, each read and written by `one`; the field of `one` itself is not used.
template <class Target, class Value>
Option<Target> list_row(std::string name, std::vector<Value> Target::*field, Option<Target> one, Value Target::*of_one,
                        std::size_t most, std::string form, std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.form = std::move(form);
  row.set = [field, one, of_one, most](Target& target, const std::string& value) -> Status {
    std::vector<Value> values;
    for (std::size_t at = 0; at <= value.size() && !value.empty();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      const std::size_t first = std::min(value.find_first_not_of(' ', at), comma);
      Target tried;
      if (const Status status = one.set(tried, value.substr(first, comma - first)); !status) return status;
      values.push_back(tried.*of_one);
      if (values.size() > most) return bad_value(value, "a list of at most " + std::to_string(most) + " numbers");
      at = comma + 1;
    }
    target.*field = std::move(values);
    return {};
  };
  row.get = [field, one, of_one](const Target& target) {
    std::string text;
    for (const Value& value : target.*field) {
      Target tried;
      tried.*of_one = value;
      text += (text.empty() ? "" : ",") + one.get(tried);
    }
    return text;
  };
  return row;
}

template <class Target>
Option<Target> duration_row(std::string name, std::uint64_t Target::*field, WholeRange range_ms, std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.form = "duration from " + format_duration(range_ms.least) + " to " + format_duration(range_ms.most);
  row.set = [field, range_ms, form = row.form](Target& target, const std::string& value) -> Status {
    Result<std::uint64_t> ms = parse_duration_ms(value);
    if (!ms) return ms.error();
    if (*ms < range_ms.least || *ms > range_ms.most) return bad_value(value, "a " + form);
    target.*field = *ms;
    return {};
  };
  row.get = [field](const Target& target) { return format_duration(target.*field); };
  return row;
}

template <class Target>
Option<Target> flag_row(std::string name, bool Target::*field, std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.allowed = "true | false";
  row.set = [field](Target& target, const std::string& value) -> Status {
    if (value != "true" && value != "false") return bad_value(value, "true or false");
    target.*field = value == "true";
    return {};
  };
  row.get = [field](const Target& target) { return std::string(target.*field ? "true" : "false"); };
  return row;
}

// "unknown key "stepz"; did you mean "steps"? tgctl help job explains all keys", to follow the place. meant: the key
// for which other programs use this name, or "". page: the command that prints the reference.
template <class Target>
std::string unknown_key(const std::vector<Option<Target>>& table, std::string_view name, std::string meant,
                        const std::string& page) {
  std::vector<std::string> known;
  for (const Option<Target>& row : table) known.push_back(row.name);
  if (meant.empty()) meant = nearest(name, known);
  return "unknown key \"" + clip_text(name, 100) + "\"" +
         (meant.empty() ? "; " : "; did you mean \"" + meant + "\"? ") + page + " explains all keys";
}

}  // namespace tg::schema

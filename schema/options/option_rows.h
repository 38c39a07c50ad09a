// Rows of an option table by kind of value: the text of `set` errors and the canonical text of `get` are the same for
// every option of a kind. Used by job.cpp and node_config.cpp only. Pure.
#pragma once

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "schema/options/options.h"
#include "schema/text.h"

namespace tg::schema {

inline Error bad_value(std::string_view value, const std::string& expected) {
  return {ErrorKind::kUsage, "\"" + clip_text(value, 100) + "\" is not " + expected};
}

// Letters, no line break and no # (which starts a comment), so that every value survives a file.
template <class Target>
Option<Target> text_row(std::string name, std::string Target::*field, std::size_t most_bytes, std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.set = [field, most_bytes](Target& target, const std::string& value) -> Status {
    const bool padded = !value.empty() && (value.front() == ' ' || value.back() == ' ');
    if (value.size() > most_bytes || !is_printable(value) || value.find('#') != std::string::npos || padded) {
      return bad_value(value, "a text of at most " + std::to_string(most_bytes) + " printable bytes without #");
    }
    target.*field = value;
    return {};
  };
  row.get = [field](const Target& target) { return target.*field; };
  return row;
}

template <class Target>
Option<Target> choice_row(std::string name, std::string Target::*field, std::vector<std::string> choices,
                          std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  for (const std::string& choice : choices) row.allowed += (row.allowed.empty() ? "" : " | ") + choice;
  row.set = [field, choices = std::move(choices), allowed = row.allowed](Target& target,
                                                                         const std::string& value) -> Status {
    for (const std::string& choice : choices) {
      if (choice != value) continue;
      target.*field = value;
      return {};
    }
    const std::string near = nearest(value, choices);
    return bad_value(value, "one of " + allowed + (near.empty() ? "" : "; did you mean " + near + "?"));
  };
  row.get = [field](const Target& target) { return target.*field; };
  return row;
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
  row.set = [field, range](Target& target, const std::string& value) -> Status {
    std::uint64_t number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, code] = std::from_chars(value.data(), end, number);
    if (code != std::errc() || stop != end || number < range.least || number > range.most) {
      return bad_value(value,
                       "a whole number from " + std::to_string(range.least) + " to " + std::to_string(range.most));
    }
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
  row.set = [field, range](Target& target, const std::string& value) -> Status {
    double number = 0;
    const char* const end = value.data() + value.size();
    const auto [stop, code] = std::from_chars(value.data(), end, number);
    const bool above = range.least_excluded ? number > range.least : number >= range.least;
    const bool below = range.most_excluded ? number < range.most : number <= range.most;
    if (code != std::errc() || stop != end || !std::isfinite(number) || !above || !below) {
      return bad_value(value, std::string("a number ") + (range.least_excluded ? "above " : "from ") +
                                  format_real(range.least) + (range.most_excluded ? " to below " : " to ") +
                                  format_real(range.most));
    }
    target.*field = number;
    return {};
  };
  row.get = [field](const Target& target) { return format_real(target.*field); };
  return row;
}

template <class Target>
Option<Target> duration_row(std::string name, std::uint64_t Target::*field, WholeRange range_ms, std::string help) {
  Option<Target> row;
  row.name = std::move(name);
  row.help = std::move(help);
  row.set = [field, range_ms](Target& target, const std::string& value) -> Status {
    Result<std::uint64_t> ms = parse_duration_ms(value);
    if (!ms) return ms.error();
    if (*ms < range_ms.least || *ms > range_ms.most) {
      return bad_value(value,
                       "a duration from " + format_duration(range_ms.least) + " to " + format_duration(range_ms.most));
    }
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

template <class Target>
const Option<Target>* find_option(const std::vector<Option<Target>>& table, std::string_view name) {
  for (const Option<Target>& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

// "unknown key "stepz"; did you mean "steps"?", to be put behind the place.
template <class Target>
std::string unknown_key(const std::vector<Option<Target>>& table, std::string_view name) {
  std::vector<std::string> known;
  for (const Option<Target>& row : table) known.push_back(row.name);
  const std::string near = nearest(name, known);
  return "unknown key \"" + clip_text(name, 100) + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?");
}

}  // namespace tg::schema

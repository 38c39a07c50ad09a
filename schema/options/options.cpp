#include "schema/options/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <sstream>

#include "schema/text.h"

namespace tg::schema {
namespace {

namespace po = boost::program_options;

struct Unit {
  std::string_view name;
  std::uint64_t ms;
};
constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};

// Optimal string alignment: insert, delete, replace, swap neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({replaced, rows[i - 1][j] + 1, rows[i][j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

Result<std::vector<Assignment>> parse_assignments(std::string_view text, std::string_view file) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
    return Error{ErrorKind::kUsage, std::string(file) + " is UTF-16 text; save it as UTF-8"};
  if (text.find('\0') != std::string_view::npos)
    return Error{ErrorKind::kUsage, std::string(file) + " is no text: it takes lines of the form key = value"};
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the mark that some editors put before UTF-8
  std::vector<Assignment> assignments;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto wrong = [&] {
      return Error{ErrorKind::kUsage, std::string(file) + ":" + std::to_string(number) + ": \"" + clip_text(line, 100) +
                                          "\" is not of the form key = value"};
    };
    // Boost does not tell line numbers, so it gets one line at a time; a [section] has no meaning in these files.
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string::npos && line[first] == '[') return wrong();
    try {
      std::istringstream one(line);
      const po::parsed_options parsed = po::parse_config_file(one, po::options_description(), true);
      for (const po::option& option : parsed.options) {
        if (option.string_key.empty()) return wrong();
        assignments.push_back({option.string_key, option.value.empty() ? "" : option.value[0], number});
      }
    } catch (const po::error&) {
      return wrong();
    }
  }
  return assignments;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  // A third of the letters may be wrong, or one. Beyond that a suggestion confuses more than it helps.
  std::size_t best = std::max<std::size_t>(1, word.size() / 3) + 1;
  if (word.size() > 64) return "";
  std::string name;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best) {
      best = distance;
      name = candidate;
    }
  }
  return name;
}

Error bad_value(std::string_view value, const std::string& expected) {
  return {ErrorKind::kUsage, "\"" + clip_text(value, 100) + "\" is not " + expected};
}

Result<std::uint64_t> parse_duration_ms(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& known : kUnits) {
    if (code != std::errc() || unit != known.name) continue;
    if (count > UINT64_MAX / known.ms) break;
    return count * known.ms;
  }
  return Error{ErrorKind::kUsage,
               std::string("\"") + std::string(text) + "\" is not a duration such as 500ms, 10s, 2m or 1h"};
}

std::string format_duration(std::uint64_t ms) {
  if (ms == 0) return "0s";
  const Unit* unit = &kUnits[0];
  for (const Unit& candidate : kUnits) {
    if (ms % candidate.ms == 0) unit = &candidate;
  }
  return std::to_string(ms / unit->ms) + std::string(unit->name);
}

}  // namespace tg::schema

#include "ctl/format/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "kernels/base/log.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using schema::text_width;

constexpr std::size_t kGap = 2;         // between columns
constexpr std::size_t kLeastText = 20;  // a last column that is narrower is not worth wrapping

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  return widths;
}

std::vector<std::string> lines_of_row(const std::vector<std::string>& row, const std::vector<std::size_t>& widths,
                                      std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    line += row[i];
    line.append(widths[i] - text_width(row[i]) + kGap, ' ');
  }
  const std::size_t at = text_width(line);
  std::vector<std::string> lines;
  for (const std::string& part : schema::wrap_text(row.empty() ? "" : row.back(), columns - at)) {
    lines.push_back((lines.empty() ? line : std::string(at, ' ')) + part);
    lines.back().erase(lines.back().find_last_not_of(' ') + 1);
  }
  return lines;
}

// The lines of each row, every one at most so many columns wide.
std::vector<std::vector<std::string>> layout(const Rows& rows, std::size_t columns) {
  const std::vector<std::size_t> widths = widths_of(rows);
  const std::size_t last = widths.empty() ? 0 : widths.back();
  std::size_t before = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kGap;
  std::vector<std::vector<std::string>> lines;
  if (widths.size() < 2 || before + std::min(last, kLeastText) <= columns) {
    for (const auto& row : rows) lines.push_back(lines_of_row(row, widths, columns));
    return lines;
  }
  Rows rest;
  for (const auto& row : rows) rest.emplace_back(row.begin() + 1, row.end());
  const auto below = layout(rest, columns - kGap);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    lines.push_back(schema::wrap_text(rows[i][0], columns));
    for (const std::string& line : below[i]) lines.back().push_back(std::string(kGap, ' ') + line);
  }
  return lines;
}

}  // namespace

std::string format_table(const Rows& rows, const std::vector<std::string>& notes) {
  const auto lines = layout(rows, kColumns);
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const std::string& line : lines[i]) text += line + "\n";
    if (i < notes.size() && !notes[i].empty()) text += format_text(notes[i], kGap);
  }
  return text;
}

std::string first_lines(const std::string& text, std::size_t lines) {
  const auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (count + 1 <= lines || lines < 3) return text;  // the cursor takes a line
  const std::size_t kept = lines - 2;
  std::size_t end = 0;
  for (std::size_t i = 0; i < kept; ++i) end = text.find('\n', end) + 1;
  return text.substr(0, end) + "(" + std::to_string(count - kept) + " more lines; tgctl status shows all)\n";
}

std::string format_text(std::string_view text, std::size_t indent) {
  std::string lines;
  for (const std::string& line : schema::wrap_text(text, kColumns - indent))
    lines += std::string(indent, ' ') + line + "\n";
  return lines;
}

std::string format_fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string format_mbps(double mbps) { return format_fixed(mbps, mbps < 10 ? 1 : 0) + " Mbit/s"; }

std::string format_percent(double share, int digits) {
  return std::isfinite(share) ? format_fixed(share * 100, digits) + " %" : "-";
}

std::string format_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 1e-3) return format_fixed(seconds * 1e6, 0) + " us";
  if (seconds < 1) return format_fixed(seconds * 1e3, 1) + " ms";
  return format_fixed(seconds, 2) + " s";
}

std::string format_span(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const auto total = std::llround(seconds);
  char text[64];
  if (total < 60) {
    std::snprintf(text, sizeof text, "%llds", total);
  } else if (total < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", total / 60, total % 60);
  } else if (total < 48 * 3600) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", total / 3600, total / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldd", total / 86400);
  }
  return text;
}

std::string format_second(std::int64_t unix_ms) {
  return unix_ms <= 0 ? std::string() : format_utc(unix_ms).substr(0, sizeof "2017-12-04T09:00:00" - 1) + "Z";
}

std::string format_bytes(double bytes) {
  static constexpr const char* kUnits[] = {" B", " kB", " MB", " GB", " TB"};
  std::size_t unit = 0;
  while (bytes >= 999.95 && unit + 1 < std::size(kUnits)) {
    bytes /= 1000;
    ++unit;
  }
  return format_fixed(bytes, unit == 0 ? 0 : 1) + kUnits[unit];
}

}  // namespace tg::ctl

#include "ctl/format/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>
#include <string_view>

#include "kernels/base/log.h"
#include "schema/text.h"

namespace tg::ctl {
namespace {

using schema::text_width;

constexpr std::size_t kGap = 2;       // between columns
constexpr std::size_t kMinName = 8;   // width of a name that is cut
constexpr std::size_t kMinText = 20;  // a narrower last column is not wrapped

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  return widths;
}

std::vector<std::string> lines_of_row(const std::vector<std::string>& row, const std::vector<std::size_t>& widths,
                                      std::size_t gap, std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i + 1 < row.size(); ++i) {
    line += row[i];
    line.append(widths[i] - text_width(row[i]) + gap, ' ');
  }
  const std::size_t at = text_width(line);
  std::vector<std::string> lines;
  for (const std::string& part : schema::wrap_text(row.empty() ? "" : row.back(), columns - at)) {
    lines.push_back((lines.empty() ? line : std::string(at, ' ')) + part);
    lines.back().erase(lines.back().find_last_not_of(' ') + 1);
  }
  return lines;
}

// The lines of each row, each at most `columns` wide.
std::vector<std::vector<std::string>> layout(const Rows& rows, std::size_t columns) {
  const std::vector<std::size_t> widths = widths_of(rows);
  const std::size_t last = widths.empty() ? 0 : widths.back();
  std::size_t before = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before += widths[i] + kGap;
  std::vector<std::vector<std::string>> lines;
  if (widths.size() < 2 || before + std::min(last, kMinText) <= columns) {
    for (const auto& row : rows) lines.push_back(lines_of_row(row, widths, kGap, columns));
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

// Joins the lines of all rows, with each row's note below.
std::string with_notes(const std::vector<std::vector<std::string>>& lines, const std::vector<std::string>& notes,
                       std::size_t columns) {
  std::string text;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string note = i < notes.size() ? notes[i] : "";
    for (const std::string& line : lines[i]) text += line + "\n";
    if (note.empty()) continue;
    if (columns == kAnyColumns) {
      text.back() = ' ';
      text += ' ' + note + "\n";
    } else {
      text += format_text(note, kGap, columns);
    }
  }
  return text;
}

}  // namespace

std::string format_table(const Rows& rows, const std::vector<std::string>& notes, std::size_t columns) {
  return with_notes(layout(rows, columns), notes, columns);
}

std::string format_list(Rows rows, const std::vector<std::string>& notes, std::size_t columns) {
  std::vector<std::size_t> widths = widths_of(rows);
  const std::size_t gaps = widths.size() - 1, cells = std::accumulate(widths.begin(), widths.end(), std::size_t{0});
  const std::size_t gap = cells + gaps * kGap <= columns ? kGap : 1;
  const std::size_t others = cells - widths[0] + gaps * gap;
  widths[0] = std::min(widths[0], std::max(kMinName, columns - std::min(columns, others)));
  std::vector<std::vector<std::string>> lines;
  for (std::vector<std::string>& row : rows) {
    row[0] = cut_middle(row[0], widths[0]);
    lines.push_back({fit_line(lines_of_row(row, widths, gap, kAnyColumns).front(), columns)});
  }
  return with_notes(lines, notes, columns);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string fit_line(std::string line, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) == 0x80) continue;
    if (width++ == columns) {
      line.resize(i);
      break;
    }
  }
  return line;
}

std::string cut_middle(const std::string& name, std::size_t columns) {
  if (text_width(name) <= columns) return name;
  const std::size_t end = columns / 3;
  return fit_line(name, columns - end - 1) + "~" + name.substr(name.size() - end);
}

std::string format_text(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string lines;
  for (const std::string& line : schema::wrap_text(text, columns - indent))
    lines += std::string(indent, ' ') + line + "\n";
  return lines;
}

std::string format_fixed(double value, int digits) {
  if (!std::isfinite(value)) return "-";
  char text[64];
  if (std::abs(value) < std::pow(10, 9 - digits)) {
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
  }
  std::snprintf(text, sizeof text, "%.2e", value);
  const char* const end = std::strchr(text, 'e');
  return std::string(text).substr(0, static_cast<std::size_t>(end - text)) + "e" + std::to_string(std::atoi(end + 1));
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

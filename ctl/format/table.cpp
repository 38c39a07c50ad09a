#include "ctl/format/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace tg::ctl {
namespace {

// Code points, so that a reason in another script does not shift its row.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
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

// Formats numbers and tables for people. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "schema/text.h"

namespace tg::ctl {

using Rows = std::vector<std::vector<std::string>>;

// The width of a terminal that does not report one.
inline constexpr std::size_t kColumns = 80;
inline constexpr std::size_t kMinColumns = 20;                                           // no output is narrower
inline constexpr std::size_t kAnyColumns = std::numeric_limits<std::size_t>::max() / 2;  // for a pipe or a file

// A table with columns as wide as their widest cell, two spaces apart; the first row is the heading. If it is wider
// than `columns`, the last column is wrapped; if that does not help, the first column gets lines of its own. notes:
// indented below each row; "" = none, and there may be fewer than rows. With kAnyColumns a note follows its row on the
// same line.
std::string format_table(const Rows& rows, const std::vector<std::string>& notes = {}, std::size_t columns = kColumns);
// The same, but each row stays on one line: if it is too wide, columns are one space apart, and then the names in the
// first one are cut in the middle.
std::string format_list(Rows rows, const std::vector<std::string>& notes, std::size_t columns);
// Splits a text at \n.
std::vector<std::string> lines_of(const std::string& text);
// Cuts a line to a width, at a code point.
std::string fit_line(std::string line, std::size_t columns);
// Cuts the middle out of a name: "resnet-18-2026~28-d002".
std::string cut_middle(const std::string& name, std::size_t columns);
// Wraps a paragraph; every line begins with `indent` spaces.
std::string format_text(std::string_view text, std::size_t indent = 0, std::size_t columns = kColumns);

// printf's %.*f; "-" for a value that is not finite, "1.67e13" for one with more than nine digits.
std::string format_fixed(double value, int digits);
using schema::format_span;
std::string format_mbps(double mbps);                  // "941 Mbit/s", "5.6 Mbit/s"
std::string format_percent(double share, int digits);  // 0.981 -> "98.1 %"
std::string format_seconds(double seconds);            // "950 us", "4.1 ms", "2.50 s"
std::string format_second(std::int64_t unix_ms);       // "2026-11-23T04:52:10Z", "" for 0
std::string format_bytes(double bytes);                // "1.2 MB", powers of 1000

}  // namespace tg::ctl

// Numbers and tables for people. Pure.
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

// What a terminal is taken to hold where it does not say.
inline constexpr std::size_t kColumns = 80;
inline constexpr std::size_t kMinColumns = 20;                                           // nothing is made narrower
inline constexpr std::size_t kAnyColumns = std::numeric_limits<std::size_t>::max() / 2;  // a pipe or a file

// Columns as wide as their widest cell, two spaces apart, a line per row; the first row is the heading. Where that is
// wider than `columns` the last column is wrapped, and where that does not help the first column gets lines of its own.
// notes: below each row, indented; "" for none, and there may be fewer notes than rows. With kAnyColumns they end their
// row: then a row is a line, always.
std::string format_table(const Rows& rows, const std::vector<std::string>& notes = {}, std::size_t columns = kColumns);
// The same, but a row is a line in any case: where it is too wide, the columns stand one space apart; then the names in
// the first one are cut in their middle.
std::string format_list(Rows rows, const std::vector<std::string>& notes, std::size_t columns);
// Of a text whose lines end with \n.
std::vector<std::string> lines_of(const std::string& text);
// Cut to a terminal's width, at a code point.
std::string fit_line(std::string line, std::size_t columns);
// The same in its middle: "resnet-18-2026~28-d002".
std::string cut_middle(const std::string& name, std::size_t columns);
// A paragraph; every line begins with `indent` spaces.
std::string format_text(std::string_view text, std::size_t indent = 0, std::size_t columns = kColumns);

// printf's %.*f, "-" for what is not finite; what would have more than nine digits is "1.67e13".
std::string format_fixed(double value, int digits);
using schema::format_span;
std::string format_mbps(double mbps);                  // "941 Mbit/s", "5.6 Mbit/s"
std::string format_percent(double share, int digits);  // 0.981 -> "98.1 %"
std::string format_seconds(double seconds);            // "950 us", "4.1 ms", "2.50 s"
std::string format_second(std::int64_t unix_ms);       // "2026-11-23T04:52:10Z", "" for 0
std::string format_bytes(double bytes);                // "1.2 MB", powers of 1000

}  // namespace tg::ctl

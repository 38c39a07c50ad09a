// Lays out lines and tables of the live view in the given width. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/watch/screen.h"

namespace tg::ctl {

// The text with one column for each code point: visible(), with "?" for those that are wide, combining or not in the
// terminal's character set.
std::string in_columns(std::string_view text, bool utf8);

std::size_t width_of(const ScreenLine& line);
// Cuts a line to the width; if `rest` is a style, fills the line up with it.
ScreenLine cut_line(ScreenLine line, const View& view, unsigned rest = kPlain);

// A table; the first row is the heading. If it is too wide, gaps get smaller, then columns are dropped from the right;
// the last one is cut at its end, and the first one in the middle.
std::vector<ScreenLine> table_lines(std::vector<ScreenLine> rows, const View& view);

}  // namespace tg::ctl

// Lines and tables of the live view, as wide as they may be. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/watch/screen.h"

namespace tg::ctl {

// One column for each code point: visible(), and "?" for what is wide, combining or not in the terminal's set.
std::string in_columns(std::string_view text, bool utf8);

std::size_t width_of(const ScreenLine& line);
// Cut to the width; with a style for the rest, filled up to it.
ScreenLine cut_line(ScreenLine line, const View& view, unsigned rest = kPlain);

// The first row is the heading. Where it is too wide, gaps get smaller, then columns go from the right; the last one is
// cut, and the first one in its middle.
std::vector<ScreenLine> table_lines(std::vector<ScreenLine> rows, const View& view);

}  // namespace tg::ctl

// Writes text, tables and lines in HTML and SVG. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/format/table.h"

namespace tg::ctl {

// Escapes text for an element, or for an attribute in double quotes, and makes it visible().
std::string escaped(std::string_view text);
// Returns <NAME class="CLASS">escaped text</NAME>.
std::string element(const char* name, std::string_view text, const char* css_class = "");
// Standard base64 (RFC 4648), padded.
std::string base64(std::string_view bytes);

// Parts of an SVG picture: a length with one decimal, a line, an escaped text with its start, middle or end at (x, y).
// more: attributes, for a text with a leading space.
std::string px(double value);
std::string svg_line(double x1, double y1, double x2, double y2, const char* more);
std::string svg_text(double x, double y, const char* anchor, const std::string& text, const char* more = "");

// A row of escaped cells; cell: th or td.
std::string row(const std::vector<std::string>& cells, const char* cell = "td");
// A table with a heading, unless that is empty; it scrolls if it is too wide.
std::string table(const std::vector<std::string>& heading, const Rows& rows);

}  // namespace tg::ctl

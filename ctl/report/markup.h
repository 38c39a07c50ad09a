// Text in HTML and SVG. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/format/table.h"

namespace tg::ctl {

// For the text of an element and for an attribute in double quotes. Control characters become spaces.
std::string escaped(std::string_view text);
// <NAME CLASS>escaped text</NAME>
std::string element(const char* name, std::string_view text, const char* css_class = "");
// Standard base64 (RFC 4648), padded.
std::string base64(std::string_view bytes);

// Parts of an SVG picture: a length with one digit, a line, an escaped text that begins, is in the middle of or ends
// there. more: attributes, of a text with a space before.
std::string px(double value);
std::string svg_line(double x1, double y1, double x2, double y2, const char* more);
std::string svg_text(double x, double y, const char* anchor, const std::string& text, const char* more = "");

// A row of escaped cells, of this element.
std::string row(const std::vector<std::string>& cells, const char* cell = "td");
// With a heading, unless that is empty; scrolls where it is too wide.
std::string table(const std::vector<std::string>& heading, const Rows& rows);

}  // namespace tg::ctl

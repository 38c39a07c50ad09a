// Text in HTML and SVG. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tg::ctl {

// For the text of an element and for an attribute in double quotes. Control characters become spaces.
std::string escaped(std::string_view text);
// <NAME CLASS>escaped text</NAME>
std::string element(const char* name, std::string_view text, const char* css_class = "");
// Standard base64 (RFC 4648), padded.
std::string base64(std::string_view bytes);

}  // namespace tg::ctl

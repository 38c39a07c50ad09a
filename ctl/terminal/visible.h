// Makes text from others safe for a terminal: control characters, invisible ones and those that change the direction of
// text become escapes such as \u001b, bytes that are not UTF-8 become \x9b. Line feeds and tabs stay. JSON keeps its
// meaning, because \u001b is its own escape for that character. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tg::ctl {

std::string visible(std::string_view text);

}  // namespace tg::ctl

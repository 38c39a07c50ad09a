// What others say, made fit for a terminal: a character that would steer it, hide, or turn the order of letters is
// shown as \u001b and not sent; a byte that is no UTF-8 as \x9b. Line feeds and tabs stay. In JSON nothing changes its
// meaning: \u001b is how JSON writes that character. Pure.
#pragma once

#include <string>
#include <string_view>

namespace tg::ctl {

std::string visible(std::string_view text);

}  // namespace tg::ctl

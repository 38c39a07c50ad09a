// The head and the end of each HTML page of tgctl, with its style sheet. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace tg::ctl {

// The Content-Security-Policy allows only this style sheet and pictures in the page itself (data:).
// refresh_seconds: the browser loads the page again after this time; 0 = never.
std::string begin_page(const std::string& title, std::uint64_t refresh_seconds = 0);
inline constexpr const char* kEndOfPage = "</body></html>\n";

}  // namespace tg::ctl

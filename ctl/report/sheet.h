// What every page of tgctl begins and ends with: its policy and its style sheet. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace tg::ctl {

// The Content-Security-Policy allows this style sheet and pictures in the page itself (data:), and nothing else.
// again_seconds: the browser loads the page again after so long; 0 = never.
std::string begin_page(const std::string& title, std::uint64_t again_seconds = 0);
inline constexpr const char* kEndOfPage = "</body></html>\n";

}  // namespace tg::ctl

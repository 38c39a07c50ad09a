// Reads small files of /proc and /sys.
#pragma once

#include <string>

namespace tg::engine {

// An absent file reads as empty, which sets no limits.
std::string content_of(const std::string& path);

}  // namespace tg::engine

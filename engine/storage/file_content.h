// Reads small files of /proc and /sys.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace tg::engine {

// An absent file reads as empty, which sets no limits.
inline std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace tg::engine

// A whole number on the command line of the lab's tools.
#pragma once

#include <charconv>
#include <string>

#include "kernels/base/status.h"

namespace tg::lab {

inline Result<std::size_t> whole_number(const std::string& option, const std::string& text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stop != end)
    return Error{ErrorKind::kUsage, option + ": \"" + text + "\" is not a whole number"};
  return number;
}

}  // namespace tg::lab

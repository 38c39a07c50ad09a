// Items as one text with separators between: "a, b, c". Pure; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tg {

// text_of: what of an item is shown, if it is no text itself. Empty texts at the beginning get no separator.
template <class Items = std::vector<std::string>, class TextOf = std::identity>
std::string joined(const Items& items, std::string_view separator = ", ", TextOf text_of = {}) {
  std::string text;
  for (const auto& item : items) {
    if (!text.empty()) text += separator;
    text += std::invoke(text_of, item);
  }
  return text;
}

}  // namespace tg

// Enums that people write and read as words. The words are listed once, beside the enum:
//
//   enum class Colour : std::uint8_t { kRed, kGreen };
//   constexpr auto words_of(Colour) { return words("red", "green"); }
//
// Values count from 0; value i is word i. Parsing, printing, help and errors all take the words from there.
// Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "kernels/base/check.h"

namespace tg {

template <class... Word>
constexpr std::array<const char*, sizeof...(Word)> words(Word... word) {
  return {word...};
}

template <class Enum>
const char* to_word(Enum value) {
  constexpr auto kAll = words_of(Enum());
  const auto index = static_cast<std::size_t>(value);
  TG_CHECK(index < kAll.size(), index);
  return kAll[index];
}

// The value of a word; nothing if it is not one of the words.
template <class Enum>
std::optional<Enum> from_word(std::string_view word) {
  constexpr auto kAll = words_of(Enum());
  for (std::size_t i = 0; i < kAll.size(); ++i)
    if (word == kAll[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

// All values of the enum, in order.
template <class Enum>
constexpr auto values_of() {
  std::array<Enum, words_of(Enum()).size()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Enum>(i);
  return values;
}

}  // namespace tg

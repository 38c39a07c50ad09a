#include "ctl/terminal/visible.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <iterator>

namespace tg::ctl {
namespace {

struct Range {
  char32_t first, last;
};
// Unicode's control and format characters, and its line and paragraph separators.
constexpr Range kUnseen[] = {{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x600, 0x605},
                             {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},
                             {0x8e2, 0x8e2},     {0x180e, 0x180e},   {0x200b, 0x200f},   {0x2028, 0x202e},
                             {0x2060, 0x206f},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
                             {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
                             {0xe0000, 0xe007f}};

bool is_unseen(char32_t character) {
  if (character == '\n' || character == '\t') return false;
  return std::any_of(std::begin(kUnseen), std::end(kUnseen),
                     [=](Range one) { return character >= one.first && character <= one.last; });
}

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;  // 0 = the text does not begin with UTF-8
};

CodePoint first_of(std::string_view text) {
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by the bytes of the sequence
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc0 || byte(0) > 0xf7 || text.size() < bytes) return {};
  char32_t value = byte(0) & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  if (value < kLeast[bytes] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, bytes};
}

std::string hexadecimal(const char* format, char32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(value));
  return text;
}

std::string name_of(char32_t character) {
  if (character < 0x10000) return hexadecimal("\\u%04x", character);
  const char32_t rest = character - 0x10000;  // two units of UTF-16, as in JSON
  return hexadecimal("\\u%04x", 0xd800 + (rest >> 10)) + hexadecimal("\\u%04x", 0xdc00 + (rest & 0x3ff));
}

}  // namespace

std::string visible(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const CodePoint first = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(first.bytes, 1);
    if (first.bytes == 0) {
      shown += hexadecimal("\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (is_unseen(first.value)) {
      shown += name_of(first.value);
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

}  // namespace tg::ctl

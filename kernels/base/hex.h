// A digest or a hash as people and records see it. Pure.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tg {

// The digest as 16 hexadecimal digits.
inline std::string hex_digest(std::uint64_t digest) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

inline std::optional<std::uint64_t> parse_hex_digest(std::string_view text) {
  if (text.size() != 16) return std::nullopt;
  std::uint64_t digest = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, digest, 16);
  if (code != std::errc() || stop != end) return std::nullopt;
  return digest;
}

}  // namespace tg

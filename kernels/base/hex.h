// A digest or a hash as people and records see it. Pure.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace tg {

// 16 digits.
inline std::string hex_digest(std::uint64_t digest) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

}  // namespace tg

// Durations as text, for the messages of membership and liveness.
#pragma once

#include <cstdint>
#include <string>

namespace tg::daemon {

// A measured duration: "12 s".
inline std::string rounded_seconds_text(std::uint64_t ms) { return std::to_string((ms + 500) / 1000) + " s"; }

// "10 s", "250 ms".
inline std::string seconds_text(std::uint64_t ms) {
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace tg::daemon

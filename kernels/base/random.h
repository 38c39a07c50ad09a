// Random numbers from the system, for names that no two may share.
#pragma once

#include <cstdint>
#include <random>

namespace tg {

inline std::uint64_t draw_bits() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace tg

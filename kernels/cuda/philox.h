// Philox4x32-10 (Salmon et al., SC 2011), as in kernels/scalar/philox.cpp.
#pragma once

#include <cstdint>

#include "kernels/constants.h"
#include "kernels/cuda/host_device.h"
#include "kernels/types.h"

namespace tg::kernels::cuda {

struct Words4 {
  std::uint32_t at[4];
};

// Draw `index` of the stream (0, or kDitherStream) of a segment.
TG_HOST_DEVICE inline Words4 draw(const DrawKey& key, std::uint32_t stream, std::uint32_t index) {
  std::uint32_t c0 = index, c1 = key.seat, c2 = key.segment | stream, c3 = key.step;
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
  TG_UNROLL
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * c0;
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(product0);
    k0 += kPhiloxWeyl0;
    k1 += kPhiloxWeyl1;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace tg::kernels::cuda

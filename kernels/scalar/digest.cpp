#include <bit>

#include "kernels/constants.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {

std::uint64_t digest(std::span<const float> values, std::uint64_t first, std::uint64_t salt) {
  const auto low = [](std::uint64_t x) { return x & 0xFFFFFFFFU; };
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t t = (first + i) ^ salt;
    const std::uint64_t u = low(t) * kDigest1 + (t >> 32);
    const std::uint64_t v = low(u ^ u >> 32) * kDigest2 + u;
    total += (std::bit_cast<std::uint32_t>(values[i]) ^ u >> 32) * (v >> 32 | 1);
  }
  return total;
}

}  // namespace tg::kernels::scalar

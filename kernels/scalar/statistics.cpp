#include <algorithm>
#include <array>
#include <bit>

#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {

Statistics statistics(std::span<const float> gradient) {
  std::array<double, kLanes> sums{};
  std::array<double, kLanes> squares{};
  std::uint32_t max_bits = 0;
  for (std::size_t block = 0; block < gradient.size(); block += kFold) {
    const std::size_t end = std::min(block + kFold, gradient.size());
    std::array<float, kLanes> lane_sums{};
    std::array<float, kLanes> lane_squares{};
    for (std::size_t i = block; i < end; ++i) {
      const float g = gradient[i];
      lane_sums[i % kLanes] += g;
      lane_squares[i % kLanes] += g * g;
      max_bits = std::max(max_bits, std::bit_cast<std::uint32_t>(g) & 0x7FFFFFFFU);
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(lane_sums[lane]);
      squares[lane] += static_cast<double>(lane_squares[lane]);
    }
  }
  Statistics result;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    result.sum += sums[lane];
    result.sum_squares += squares[lane];
  }
  result.max_abs = std::bit_cast<float>(max_bits);
  result.finite = max_bits < 0x7F800000U;  // the bits of +inf; NaNs lie above
  return result;
}

}  // namespace tg::kernels::scalar

#include "tests/bench/made_gradient.h"

#include <algorithm>
#include <cstdint>

namespace tg::kernels {

MadeGradient::MadeGradient(std::size_t elements, const Sparseness& sparseness) : values(elements) {
  const auto below = static_cast<std::uint32_t>(sparseness.concentrated * 0x1p24);
  for (std::size_t i = 0; i < elements; i += 4) {
    const std::uint32_t size_counter[4] = {static_cast<std::uint32_t>(i), 1, 2, 3};
    const std::uint32_t place_counter[4] = {static_cast<std::uint32_t>(i), 1, 2, 4};
    std::uint32_t size[4], place[4];
    philox4x32(size_counter, 1, size);
    philox4x32(place_counter, 1, place);
    for (std::size_t e = 0; e < 4; ++e) {
      // The sum of four uniform bytes is near enough to a Gaussian; sigma is 148.
      int total = -510;
      for (int shift = 0; shift < 32; shift += 8) total += static_cast<int>(size[e] >> shift & 0xFF);
      values[i + e] = static_cast<float>(total) / 148 * (place[e] >> 8 < below ? 1.0F : 0x1p-14F);
    }
  }
  const Statistics statistics = available().front()->statistics(values.span());
  scale.clip = clip_bound(statistics, elements, kClipSigma);
  scale.scaler = std::min(scale.clip, statistics.max_abs) * sparseness.factor;
}

}  // namespace tg::kernels

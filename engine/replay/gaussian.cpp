#include "engine/replay/gaussian.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "kernels/kernels.h"

namespace tg::engine {
namespace {

constexpr double kClipSigma = 2.5;
// Word 1 of the counters drawn here is this plus the rank; ternarize has the bare rank there (below 128).
constexpr std::uint32_t kReplayDomain = 0x52504c00;
constexpr std::size_t kQuantiles = 1 << 15;

// The probability of a nonzero code, as derived in the header.
double nonzeros_of(double normal_share) {
  const double t = kClipSigma * std::sqrt(normal_share);
  const double least =
      std::sqrt(2 / std::numbers::pi) * (1 - std::exp(-t * t / 2)) + t * std::erfc(t / std::numbers::sqrt2);
  return normal_share * least / t * 255 / 256;
}

// |z| in the middle of each of kQuantiles equally probable parts: erf(|z| / sqrt 2) = (k + 0.5) / kQuantiles. erf is
// concave, so Newton's steps from the quantile before never pass the next one.
std::array<float, kQuantiles> make_quantiles() {
  std::array<float, kQuantiles> quantiles{};
  double z = 0;
  for (std::size_t k = 0; k < kQuantiles; ++k) {
    const double wanted = (static_cast<double>(k) + 0.5) / kQuantiles;
    for (double step = 1; step > 1e-9;) {
      step = (wanted - std::erf(z / std::numbers::sqrt2)) / (std::sqrt(2 / std::numbers::pi) * std::exp(-z * z / 2));
      z += step;
    }
    quantiles[k] = static_cast<float>(z * GaussianGradients::kDeviation);
  }
  return quantiles;
}

}  // namespace

GaussianGradients::GaussianGradients(double zeros) : normal_of_65536_(65536) {
  if (1 - zeros >= nonzeros_of(1)) return;
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (nonzeros_of(middle) < 1 - zeros ? low : high) = middle;
  }
  // 16 bits of a word decide; rounding also hides the last bits of libm, which differ between machines.
  normal_of_65536_ = std::max(1U, static_cast<std::uint32_t>(std::lround(high * 65536)));
}

void GaussianGradients::fill(std::uint64_t seed, std::uint32_t rank, std::uint32_t segment, std::span<float> values,
                             std::size_t first) const {
  static const std::array<float, kQuantiles> quantiles = make_quantiles();
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const std::uint32_t counter[4] = {static_cast<std::uint32_t>((first + i) / 4), kReplayDomain + rank, segment, 0};
    std::uint32_t words[4];
    kernels::philox4x32(counter, seed, words);
    const std::size_t count = std::min<std::size_t>(4, values.size() - i);
    for (std::size_t k = 0; k < count; ++k) {
      // A word has 15 bits of quantile, the sign, and 16 bits that choose between the normal part and 0.
      const float magnitude = quantiles[words[k] >> 17];
      const float value = (words[k] & 0x10000U) != 0 ? -magnitude : magnitude;
      values[i + k] = (words[k] & 0xFFFFU) < normal_of_65536_ ? value : 0.0F;
    }
  }
}

}  // namespace tg::engine

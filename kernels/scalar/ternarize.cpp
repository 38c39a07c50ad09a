#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/constants.h"
#include "kernels/require.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {
namespace {

constexpr std::size_t kDraw = 16;  // elements that one draw of 16 bytes serves, and dithers per group of kBlock

std::array<std::uint32_t, 4> draw(const DrawKey& key, std::uint32_t stream, std::size_t index) {
  const std::uint32_t counter[4] = {static_cast<std::uint32_t>(index), key.seat, key.segment | stream, key.step};
  std::array<std::uint32_t, 4> words;
  philox4x32(counter, key.seed, words.data());
  return words;
}

std::array<float, kDraw> dithers_of(const DrawKey& key, std::size_t group) {
  std::array<float, kDraw> dithers;
  for (std::size_t part = 0; part < 4; ++part) {
    const auto words = draw(key, kDitherStream, 4 * group + part);
    for (std::size_t w = 0; w < 4; ++w) dithers[4 * part + w] = static_cast<float>(words[w] >> 8) * 0x1p-24F;
  }
  return dithers;
}

std::uint32_t threshold(float g, float clip, float q, float dither) {
  const float magnitude = std::fabs(g);
  const float scaled = std::fma(magnitude < clip ? magnitude : clip, q, dither);
  return scaled < 255.0F ? static_cast<std::uint32_t>(scaled) : 255U;
}

}  // namespace

void ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
               Planes codes) {
  require_same_size(gradient.size(), codes.nonzero.size() * kWordBits);
  require_same_size(gradient.size(), codes.negative.size() * kWordBits);
  std::ranges::fill(codes.nonzero, 0);
  std::ranges::fill(codes.negative, 0);
  if (!(scale.scaler >= kSmallestScaler)) return;
  const float q = 255.0F / scale.scaler;
  std::array<float, kDraw> dithers{};
  for (std::size_t i = 0; i < gradient.size(); i += kDraw) {
    if (i % kBlock == 0) dithers = dithers_of(key, (first + i) / kBlock);
    const auto words = draw(key, 0, (first + i) / kDraw);
    for (std::size_t e = 0; e < kDraw; ++e) {
      const float g = gradient[i + e];
      const std::uint32_t byte = words[e / 4] >> (e % 4 * 8) & 0xFFU;
      const std::uint64_t nonzero = byte < threshold(g, scale.clip, q, dithers[e]);
      const std::uint64_t negative = nonzero & static_cast<std::uint64_t>(std::signbit(g));
      codes.nonzero[i / kWordBits] |= nonzero << (i + e) % kWordBits;
      codes.negative[i / kWordBits] |= negative << (i + e) % kWordBits;
    }
  }
}

}  // namespace tg::kernels::scalar

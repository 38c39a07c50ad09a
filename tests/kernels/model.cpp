#include "tests/kernels/model.h"

#include <algorithm>
#include <cmath>

namespace tg::kernels::test {
namespace {

std::uint32_t word_of(const DrawKey& key, std::uint32_t stream, std::size_t draw, std::size_t word) {
  const std::uint32_t counter[4] = {static_cast<std::uint32_t>(draw), key.seat, key.segment + (stream << 31), key.step};
  std::uint32_t words[4];
  philox4x32(counter, key.seed, words);
  return words[word];
}

}  // namespace

std::uint32_t model_threshold(float g, const Scale& scale, float dither, Mistake mistake) {
  const float q = 255.0F / scale.scaler;
  const float magnitude = std::min(std::fabs(g), scale.clip);
  const float scaled = std::fma(magnitude, q, mistake == Mistake::kNoDither ? 0.0F : dither);
  const double whole = std::trunc(static_cast<double>(scaled));
  return static_cast<std::uint32_t>(mistake == Mistake::kNoClamp ? whole : std::min(whole, 255.0));
}

float model_dither(const DrawKey& key, std::size_t i, Mistake mistake) {
  DrawKey used = key;
  if (mistake == Mistake::kDitherWithoutSeat) used.seat = 0;
  const std::size_t within = i % 16;
  return static_cast<float>(word_of(used, 1, 4 * (i / 512) + within / 4, within % 4) >> 8) * 0x1p-24F;
}

std::uint32_t model_byte(const DrawKey& key, std::size_t i) {
  return word_of(key, 0, i / 16, i % 16 / 4) >> i % 4 * 8 & 0xFF;
}

void model_ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
                     Planes codes, Mistake mistake) {
  std::ranges::fill(codes.nonzero, 0);
  std::ranges::fill(codes.negative, 0);
  if (scale.scaler < kSmallestScaler) return;
  float dithers[16] = {};
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    if (i % 512 < 16) dithers[i % 16] = model_dither(key, first + i, mistake);
    const std::uint32_t threshold = model_threshold(gradient[i], scale, dithers[i % 16], mistake);
    if (threshold == 0 || model_byte(key, first + i) >= threshold) continue;
    codes.nonzero[i / 64] |= std::uint64_t{1} << i % 64;
    if (std::signbit(gradient[i])) codes.negative[i / 64] |= std::uint64_t{1} << i % 64;
  }
}

}  // namespace tg::kernels::test

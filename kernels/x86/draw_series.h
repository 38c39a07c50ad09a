// Philox4x32-10 of a series of counters that differ in word 0 only: what they have in common is computed once. After
// round 1 words 0 and 1 are the same for all, after round 2 word 3; the vector code starts there. Internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/constants.h"
#include "kernels/kernels.h"

namespace tg::kernels {
namespace {

// Round 1:  c2 = hi(M0 * c0) ^ c2_mask,  c3 = lo(M0 * c0).
// Round 2:  c0 = hi(M1 * c2) ^ c0_mask,  c1 = lo(M1 * c2),  c2 = c3 ^ c3_mask,  c3 = c3_fixed.
// Rounds 3 to 10 have the keys of keys[0] to keys[7].
struct DrawSeries {
  std::uint32_t c2_mask, c0_mask, c3_mask, c3_fixed;
  std::uint32_t keys[kPhiloxRounds - 2][2];
};

inline DrawSeries draw_series(const DrawKey& key, std::uint32_t stream) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
  const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * (key.segment | stream);
  const std::uint32_t c0 = static_cast<std::uint32_t>(product1 >> 32) ^ key.seat ^ k0;
  const std::uint32_t c1 = static_cast<std::uint32_t>(product1);
  const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * c0;
  DrawSeries series;
  series.c2_mask = key.step ^ k1;
  k0 += kPhiloxWeyl0;
  k1 += kPhiloxWeyl1;
  series.c0_mask = c1 ^ k0;
  series.c3_mask = static_cast<std::uint32_t>(product0 >> 32) ^ k1;
  series.c3_fixed = static_cast<std::uint32_t>(product0);
  for (std::uint32_t(&pair)[2] : series.keys) {
    pair[0] = k0 += kPhiloxWeyl0;
    pair[1] = k1 += kPhiloxWeyl1;
  }
  return series;
}

}  // namespace
}  // namespace tg::kernels

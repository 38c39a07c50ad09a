// Philox4x32-10 in 64-bit lanes: four draws per register set, a counter word in the low half of each lane, so that a
// round is two 32 x 32 -> 64 multiplications, two shifts and four xors, without a shuffle. The high halves hold
// leftovers that no multiplication looks at. Internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/x86/draw_series.h"

namespace tg::kernels::avx2 {
namespace {

inline constexpr std::size_t kDrawsPerBatch = 4;

// DrawSeries, each value in all four lanes, so that an xor takes it from memory.
struct WideSeries {
  __m256i c2_mask, c0_mask, c3_mask, c3_fixed;
  __m256i keys[kPhiloxRounds - 2][2];
};

inline WideSeries wide_series(const DrawKey& key, std::uint32_t stream) {
  const DrawSeries narrow = draw_series(key, stream);
  WideSeries wide{_mm256_set1_epi64x(narrow.c2_mask),
                  _mm256_set1_epi64x(narrow.c0_mask),
                  _mm256_set1_epi64x(narrow.c3_mask),
                  _mm256_set1_epi64x(narrow.c3_fixed),
                  {}};
  for (int round = 0; round < kPhiloxRounds - 2; ++round) {
    wide.keys[round][0] = _mm256_set1_epi64x(narrow.keys[round][0]);
    wide.keys[round][1] = _mm256_set1_epi64x(narrow.keys[round][1]);
  }
  return wide;
}

inline __m256i xor3(__m256i a, __m256i b, __m256i c) { return _mm256_xor_si256(_mm256_xor_si256(b, c), a); }

// The bytes of draws first, first + 1, ... in order: out[2b] and out[2b+1] are batch b's 64 bytes. Several batches
// go through the rounds together, because one alone waits for its own multiplications.
template <std::size_t kBatches>
inline void draw(const WideSeries& series, std::uint32_t first, __m256i (&out)[2 * kBatches]) {
  const __m256i m0 = _mm256_set1_epi64x(kPhiloxMultiplier0);
  const __m256i m1 = _mm256_set1_epi64x(kPhiloxMultiplier1);
  // In this order, unpacking words pairwise below leaves draws 0-1 in one register and 2-3 in the other.
  const __m256i order = _mm256_set_epi64x(3, 1, 2, 0);
  __m256i c0[kBatches], c1[kBatches], c2[kBatches], c3[kBatches];
  for (std::size_t b = 0; b < kBatches; ++b) {
    const std::uint32_t begin = first + static_cast<std::uint32_t>(kDrawsPerBatch * b);
    const __m256i p0 = _mm256_mul_epu32(m0, _mm256_add_epi64(order, _mm256_set1_epi64x(begin)));
    const __m256i p1 = _mm256_mul_epu32(m1, _mm256_xor_si256(_mm256_srli_epi64(p0, 32), series.c2_mask));
    c0[b] = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), series.c0_mask);
    c1[b] = p1;
    c2[b] = _mm256_xor_si256(p0, series.c3_mask);
    c3[b] = series.c3_fixed;
  }
  for (const __m256i(&key)[2] : series.keys) {
    for (std::size_t b = 0; b < kBatches; ++b) {
      const __m256i p0 = _mm256_mul_epu32(m0, c0[b]);
      const __m256i p1 = _mm256_mul_epu32(m1, c2[b]);
      c0[b] = xor3(_mm256_srli_epi64(p1, 32), c1[b], key[0]);
      c1[b] = p1;
      c2[b] = xor3(_mm256_srli_epi64(p0, 32), c3[b], key[1]);
      c3[b] = p0;
    }
  }
  for (std::size_t b = 0; b < kBatches; ++b) {
    const __m256i words01 = _mm256_blend_epi32(c0[b], _mm256_slli_epi64(c1[b], 32), 0xAA);
    const __m256i words23 = _mm256_blend_epi32(c2[b], _mm256_slli_epi64(c3[b], 32), 0xAA);
    out[2 * b] = _mm256_unpacklo_epi64(words01, words23);
    out[2 * b + 1] = _mm256_unpackhi_epi64(words01, words23);
  }
}

}  // namespace
}  // namespace tg::kernels::avx2

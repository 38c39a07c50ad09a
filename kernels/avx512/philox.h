// Philox4x32-10 in 64-bit lanes: eight draws per register set, a counter word in the low half of each lane, so that a
// round is two 32 x 32 -> 64 multiplications, two shifts and two three-way xors, without a shuffle. The high halves
// hold leftovers that no multiplication looks at. Internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/x86/draw_series.h"

namespace tg::kernels::avx512 {
namespace {

inline constexpr std::size_t kDrawsPerBatch = 8;

// DrawSeries, spread over registers' width by the loads.
struct WideSeries {
  long long c2_mask, c0_mask, c3_mask, c3_fixed;
  long long keys[kPhiloxRounds - 2][2];
};

inline WideSeries wide_series(const DrawKey& key, std::uint32_t stream) {
  const DrawSeries narrow = draw_series(key, stream);
  WideSeries wide{narrow.c2_mask, narrow.c0_mask, narrow.c3_mask, narrow.c3_fixed, {}};
  for (int round = 0; round < kPhiloxRounds - 2; ++round) {
    wide.keys[round][0] = narrow.keys[round][0];
    wide.keys[round][1] = narrow.keys[round][1];
  }
  return wide;
}

inline __m512i xor3(__m512i a, __m512i b, __m512i c) { return _mm512_ternarylogic_epi64(a, b, c, 0x96); }

// The bytes of draws first, first + 1, ... in order: out[2b] and out[2b+1] are batch b's 128 bytes. Several batches
// go through the rounds together, because one alone waits for its own multiplications.
template <std::size_t kBatches>
inline void draw(const WideSeries& series, std::uint32_t first, __m512i (&out)[2 * kBatches]) {
  const __m512i m0 = _mm512_set1_epi64(kPhiloxMultiplier0);
  const __m512i m1 = _mm512_set1_epi64(kPhiloxMultiplier1);
  // In this order, unpacking words pairwise below leaves draws 0-3 in one register and 4-7 in the other.
  const __m512i order = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
  __m512i c0[kBatches], c1[kBatches], c2[kBatches], c3[kBatches];
  for (std::size_t b = 0; b < kBatches; ++b) {
    const std::uint32_t begin = first + static_cast<std::uint32_t>(kDrawsPerBatch * b);
    const __m512i p0 = _mm512_mul_epu32(m0, _mm512_add_epi64(order, _mm512_set1_epi64(begin)));
    const __m512i word2 = _mm512_xor_si512(_mm512_srli_epi64(p0, 32), _mm512_set1_epi64(series.c2_mask));
    const __m512i p1 = _mm512_mul_epu32(m1, word2);
    c0[b] = _mm512_xor_si512(_mm512_srli_epi64(p1, 32), _mm512_set1_epi64(series.c0_mask));
    c1[b] = p1;
    c2[b] = _mm512_xor_si512(p0, _mm512_set1_epi64(series.c3_mask));
    c3[b] = _mm512_set1_epi64(series.c3_fixed);
  }
  for (const long long(&key)[2] : series.keys) {
    const __m512i k0 = _mm512_set1_epi64(key[0]);
    const __m512i k1 = _mm512_set1_epi64(key[1]);
    for (std::size_t b = 0; b < kBatches; ++b) {
      const __m512i p0 = _mm512_mul_epu32(m0, c0[b]);
      const __m512i p1 = _mm512_mul_epu32(m1, c2[b]);
      c0[b] = xor3(_mm512_srli_epi64(p1, 32), c1[b], k0);
      c1[b] = p1;
      c2[b] = xor3(_mm512_srli_epi64(p0, 32), c3[b], k1);
      c3[b] = p0;
    }
  }
  constexpr auto kLowToHigh = static_cast<_MM_PERM_ENUM>(0xA0);  // words 0 0 2 2 of each 128 bits
  for (std::size_t b = 0; b < kBatches; ++b) {
    const __m512i words01 = _mm512_mask_shuffle_epi32(c0[b], 0xAAAA, c1[b], kLowToHigh);
    const __m512i words23 = _mm512_mask_shuffle_epi32(c2[b], 0xAAAA, c3[b], kLowToHigh);
    out[2 * b] = _mm512_unpacklo_epi64(words01, words23);
    out[2 * b + 1] = _mm512_unpackhi_epi64(words01, words23);
  }
}

}  // namespace
}  // namespace tg::kernels::avx512

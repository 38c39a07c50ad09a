#include <immintrin.h>

#include "kernels/avx512/philox.h"
#include "kernels/constants.h"
#include "kernels/require.h"
#include "kernels/x86/functions.h"
#include "kernels/x86/read_ahead.h"

namespace tg::kernels::avx512 {
namespace {

constexpr std::size_t kBatches = 4;                              // batches of 128 bytes
constexpr std::size_t kGroups = 4;                               // groups whose dithers are drawn together: 16 draws
constexpr std::size_t kStride = kBatches * kDrawsPerBatch * 16;  // elements
static_assert(kBlock % (kBatches * kDrawsPerBatch * 16) == 0);

// The clip is at most 2s: a magnitude beyond has the threshold 255 either way, and below 2s the thresholds fit the
// signed 16-bit lanes in between, so that the packs' saturation is the clamp at 255.
struct Rule {
  __m512 clip, q;
};

inline Rule rule_of(const Scale& scale) {
  const float most = 2 * scale.scaler;
  return {_mm512_set1_ps(scale.clip < most ? scale.clip : most), _mm512_set1_ps(255.0F / scale.scaler)};
}

// The thresholds of 16 elements that share the register of dithers, not yet clamped.
inline __m512i thresholds(__m512 g, const Rule& rule, __m512 dithers) {
  constexpr int kLesserMagnitude = 0b1010;  // min(|a|, |b|), sign cleared
  return _mm512_cvttps_epi32(_mm512_fmadd_ps(_mm512_range_ps(g, rule.clip, kLesserMagnitude), rule.q, dithers));
}

// Turns 64 elements' dwords into saturated bytes in order. The packs interleave 128-bit lanes; one permutation of
// dwords undoes both.
inline __m512i in_order(__m512i packed) {
  return _mm512_permutexvar_epi32(_mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0), packed);
}

// Writes one word of each plane, for the 64 elements from `at` on.
inline void ternarize_word(const float* g, std::size_t at, const Rule& rule, __m512 dithers, __m512i bytes,
                           std::uint64_t* nonzero, std::uint64_t* negative) {
  __m512i t[4], values[4];
  for (std::size_t row = 0; row < 4; ++row) {
    read_ahead(g, at + 16 * row);
    const __m512 loaded = _mm512_loadu_ps(g + at + 16 * row);
    values[row] = _mm512_castps_si512(loaded);
    t[row] = thresholds(loaded, rule, dithers);
  }
  const __m512i limits = in_order(_mm512_packus_epi16(_mm512_packs_epi32(t[0], t[1]), _mm512_packs_epi32(t[2], t[3])));
  // Signed saturation keeps the sign.
  const __m512i signs =
      in_order(_mm512_packs_epi16(_mm512_packs_epi32(values[0], values[1]), _mm512_packs_epi32(values[2], values[3])));
  const std::uint64_t mask = _mm512_cmplt_epu8_mask(bytes, limits);
  *nonzero = mask;
  *negative = mask & _mm512_movepi8_mask(signs);
}

}  // namespace

void ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
               Planes codes) {
  require_same_size(gradient.size(), codes.nonzero.size() * kWordBits);
  require_same_size(gradient.size(), codes.negative.size() * kWordBits);
  const float* const g = gradient.data();
  const std::size_t elements = gradient.size();
  std::uint64_t* const nonzero = codes.nonzero.data();
  std::uint64_t* const negative = codes.negative.data();
  if (!(scale.scaler >= kSmallestScaler)) {
    for (std::size_t w = 0; w < elements / kWordBits; ++w) nonzero[w] = negative[w] = 0;
    return;
  }
  const Rule rule = rule_of(scale);
  const WideSeries bytes_series = wide_series(key, 0);
  const WideSeries dither_series = wide_series(key, kDitherStream);
  __m512i dither_words[kGroups];
  for (std::size_t i = 0; i < elements; i += kBlock) {
    const std::size_t group = i / kBlock;
    if (group % kGroups == 0)
      draw<2>(dither_series, static_cast<std::uint32_t>((first + i) / kBlock * 4), dither_words);
    const __m512i word = _mm512_srli_epi32(dither_words[group % kGroups], 8);
    const __m512 dithers = _mm512_mul_ps(_mm512_cvtepi32_ps(word), _mm512_set1_ps(0x1p-24F));
    for (std::size_t part = i; part < i + kBlock; part += kStride) {
      __m512i bytes[2 * kBatches];
      draw<kBatches>(bytes_series, static_cast<std::uint32_t>((first + part) / 16), bytes);
      for (std::size_t w = 0; w < kStride / kWordBits; ++w) {
        const std::size_t at = part + w * kWordBits;
        ternarize_word(g, at, rule, dithers, bytes[w], nonzero + at / kWordBits, negative + at / kWordBits);
      }
    }
  }
}

}  // namespace tg::kernels::avx512

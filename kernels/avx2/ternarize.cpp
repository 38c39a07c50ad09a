#include <immintrin.h>

#include "kernels/avx2/philox.h"
#include "kernels/constants.h"
#include "kernels/require.h"
#include "kernels/x86/functions.h"
#include "kernels/x86/read_ahead.h"

namespace tg::kernels::avx2 {
namespace {

constexpr std::size_t kBatches = 2;                              // batches of 64 bytes: what sixteen registers hold
constexpr std::size_t kStride = kBatches * kDrawsPerBatch * 16;  // elements
static_assert(kBlock % kStride == 0);

// The clip is at most 2s: a magnitude beyond has the threshold 255 either way, and below 2s the thresholds fit the
// signed 16-bit lanes in between, so that the packs' saturation is the clamp at 255. dithers[0] belongs to elements
// 0-7 of each 16, dithers[1] to elements 8-15.
struct Rule {
  __m256 clip, q, dithers[2];
};

inline Rule rule_of(const Scale& scale) {
  const float most = 2 * scale.scaler;
  return {_mm256_set1_ps(scale.clip < most ? scale.clip : most), _mm256_set1_ps(255.0F / scale.scaler), {}};
}

// The thresholds of 8 elements, not yet clamped.
inline __m256i thresholds(__m256 g, const Rule& rule, std::size_t half) {
  const __m256 magnitude = _mm256_min_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0F), g), rule.clip);
  return _mm256_cvttps_epi32(_mm256_fmadd_ps(magnitude, rule.q, rule.dithers[half]));
}

// Writes half a word of each plane, for the 32 elements from `at` on. The packs interleave 128-bit lanes; one
// permutation of dwords undoes both.
inline void ternarize_half(const float* g, std::size_t at, const Rule& rule, __m256i bytes, std::uint32_t* nonzero,
                           std::uint32_t* negative) {
  const __m256i natural = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  __m256i t[4], values[4];
  for (std::size_t row = 0; row < 4; ++row) {
    if (row % 2 == 0) read_ahead(g, at + 8 * row);
    const __m256 loaded = _mm256_loadu_ps(g + at + 8 * row);
    values[row] = _mm256_castps_si256(loaded);
    t[row] = thresholds(loaded, rule, row % 2);
  }
  const __m256i packed = _mm256_packus_epi16(_mm256_packs_epi32(t[0], t[1]), _mm256_packs_epi32(t[2], t[3]));
  const __m256i limits = _mm256_permutevar8x32_epi32(packed, natural);
  const __m256i reached = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, limits), bytes);  // byte >= threshold
  // Signed saturation keeps the sign.
  const __m256i signs =
      _mm256_packs_epi16(_mm256_packs_epi32(values[0], values[1]), _mm256_packs_epi32(values[2], values[3]));
  const auto mask = ~static_cast<std::uint32_t>(_mm256_movemask_epi8(reached));
  *nonzero = mask;
  *negative = mask & static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_permutevar8x32_epi32(signs, natural)));
}

inline __m256 dithers_from(__m256i words) {
  return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(words, 8)), _mm256_set1_ps(0x1p-24F));
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
  Rule rule = rule_of(scale);
  const WideSeries bytes_series = wide_series(key, 0);
  const WideSeries dither_series = wide_series(key, kDitherStream);
  __m256i dither_words[4];  // the dithers of two groups
  for (std::size_t i = 0; i < elements; i += kBlock) {
    const std::size_t group = i / kBlock;
    if (group % 2 == 0) draw<2>(dither_series, static_cast<std::uint32_t>((first + i) / kBlock * 4), dither_words);
    rule.dithers[0] = dithers_from(dither_words[group % 2 * 2]);
    rule.dithers[1] = dithers_from(dither_words[group % 2 * 2 + 1]);
    for (std::size_t at = i; at < i + kBlock; at += kStride) {
      __m256i bytes[2 * kBatches];
      draw<kBatches>(bytes_series, static_cast<std::uint32_t>((first + at) / 16), bytes);
      for (std::size_t w = 0; w < kStride / kWordBits; ++w) {
        const std::size_t word = at / kWordBits + w;
        std::uint32_t nonzero_half[2], negative_half[2];
        for (std::size_t half = 0; half < 2; ++half) {
          ternarize_half(g, word * kWordBits + 32 * half, rule, bytes[2 * w + half], &nonzero_half[half],
                         &negative_half[half]);
        }
        nonzero[word] = nonzero_half[0] | std::uint64_t{nonzero_half[1]} << 32;
        negative[word] = negative_half[0] | std::uint64_t{negative_half[1]} << 32;
      }
    }
  }
}

}  // namespace tg::kernels::avx2

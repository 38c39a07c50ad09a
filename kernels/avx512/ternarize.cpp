#include <immintrin.h>

#include "kernels/avx512/functions.h"
#include "kernels/avx512/philox.h"
#include "kernels/constants.h"
#include "kernels/require.h"

namespace tg::kernels::avx512 {
namespace {

constexpr std::size_t kPrefetch = 4096 / sizeof(float);  // elements ahead; hides the latency of memory on one core
constexpr std::size_t kBatches = 4;                      // of 128 bytes: one group of kBlock elements
constexpr std::size_t kGroups = 4;                       // whose dithers are drawn together: 16 draws
static_assert(kBatches * kDrawsPerBatch * 16 == kBlock);

struct Rule {
  __m512 clip, q;
};

// Thresholds 0..255 of 16 elements that share the register of dithers.
inline __m512i thresholds(__m512 g, const Rule& rule, __m512 dithers) {
  const __m512 magnitude = _mm512_min_ps(_mm512_abs_ps(g), rule.clip);
  const __m512 scaled = _mm512_fmadd_ps(magnitude, rule.q, dithers);
  return _mm512_cvttps_epi32(_mm512_min_ps(scaled, _mm512_set1_ps(255.0F)));
}

// One word of each plane. The packs interleave 128-bit lanes; one permutation of dwords undoes both.
inline void ternarize_word(const float* g, const Rule& rule, __m512 dithers, __m512i bytes, std::uint64_t* nonzero,
                           std::uint64_t* negative) {
  const __m512i natural = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  __m512i t[4];
  std::uint64_t signs = 0;
  for (std::size_t row = 0; row < 4; ++row) {
    _mm_prefetch(reinterpret_cast<const char*>(g + 16 * row + kPrefetch), _MM_HINT_T0);
    const __m512 values = _mm512_loadu_ps(g + 16 * row);
    t[row] = thresholds(values, rule, dithers);
    signs |= std::uint64_t{_mm512_movepi32_mask(_mm512_castps_si512(values))} << 16 * row;
  }
  const __m512i packed = _mm512_packus_epi16(_mm512_packus_epi32(t[0], t[1]), _mm512_packus_epi32(t[2], t[3]));
  const std::uint64_t mask = _mm512_cmplt_epu8_mask(bytes, _mm512_permutexvar_epi32(natural, packed));
  *nonzero = mask;
  *negative = mask & signs;
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
  const Rule rule{_mm512_set1_ps(scale.clip), _mm512_set1_ps(255.0F / scale.scaler)};
  const WideSeries bytes_series = wide_series(key, 0);
  const WideSeries dither_series = wide_series(key, kDitherStream);
  __m512i dither_words[kGroups];
  for (std::size_t i = 0; i < elements; i += kBlock) {
    const std::size_t group = i / kBlock;
    if (group % kGroups == 0)
      draw<2>(dither_series, static_cast<std::uint32_t>((first + i) / kBlock * 4), dither_words);
    const __m512i word = _mm512_srli_epi32(dither_words[group % kGroups], 8);
    const __m512 dithers = _mm512_mul_ps(_mm512_cvtepi32_ps(word), _mm512_set1_ps(0x1p-24F));
    __m512i bytes[2 * kBatches];
    draw<kBatches>(bytes_series, static_cast<std::uint32_t>((first + i) / 16), bytes);
    for (std::size_t w = 0; w < kBlock / kWordBits; ++w) {
      const std::size_t at = i + w * kWordBits;
      ternarize_word(g + at, rule, dithers, bytes[w], nonzero + at / kWordBits, negative + at / kWordBits);
    }
  }
}

}  // namespace tg::kernels::avx512

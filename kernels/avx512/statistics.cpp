#include <immintrin.h>

#include "kernels/x86/functions.h"
#include "kernels/x86/read_ahead.h"

namespace tg::kernels::avx512 {
namespace {

constexpr std::size_t kRegisters = kLanes / 16;

// Adds the 16 floats to lanes[0..15].
inline void fold(double* lanes, __m512 floats) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(floats));
  const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(floats, 1));
  _mm512_store_pd(lanes, _mm512_add_pd(_mm512_load_pd(lanes), low));
  _mm512_store_pd(lanes + 8, _mm512_add_pd(_mm512_load_pd(lanes + 8), high));
}

}  // namespace

Statistics statistics(std::span<const float> gradient) {
  alignas(64) double sums[kLanes] = {};
  alignas(64) double squares[kLanes] = {};
  const float* const at = gradient.data();
  const std::size_t elements = gradient.size();
  const __m512i no_sign = _mm512_set1_epi32(0x7FFFFFFF);
  __m512i max_bits[kRegisters] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (std::size_t block = 0; block < elements; block += kFold) {
    const std::size_t end = elements - block < kFold ? elements : block + kFold;
    __m512 sum[kRegisters] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    __m512 square[kRegisters] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (std::size_t i = block; i < end; i += kLanes) {
      for (std::size_t r = 0; r < kRegisters; ++r) {
        read_ahead(at, i + 16 * r);
        const __m512 g = _mm512_loadu_ps(at + i + 16 * r);
        sum[r] = _mm512_add_ps(sum[r], g);
        square[r] = _mm512_add_ps(square[r], _mm512_mul_ps(g, g));
        max_bits[r] = _mm512_max_epi32(max_bits[r], _mm512_and_si512(_mm512_castps_si512(g), no_sign));
      }
    }
    for (std::size_t r = 0; r < kRegisters; ++r) {
      fold(sums + 16 * r, sum[r]);
      fold(squares + 16 * r, square[r]);
    }
  }
  Statistics result;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    result.sum += sums[lane];
    result.sum_squares += squares[lane];
  }
  const int largest = _mm512_reduce_max_epi32(_mm512_max_epi32(max_bits[0], max_bits[1]));
  result.max_abs = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest)));
  result.finite = largest < 0x7F800000;  // the bits of +inf; NaNs lie above
  return result;
}

}  // namespace tg::kernels::avx512

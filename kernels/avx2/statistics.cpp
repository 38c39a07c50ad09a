#include <immintrin.h>

#include "kernels/x86/functions.h"
#include "kernels/x86/read_ahead.h"

namespace tg::kernels::avx2 {
namespace {

constexpr std::size_t kRegisters = kLanes / 8;

// Adds the 8 floats to lanes[0..7].
inline void fold(double* lanes, __m256 floats) {
  const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(floats));
  const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(floats, 1));
  _mm256_store_pd(lanes, _mm256_add_pd(_mm256_load_pd(lanes), low));
  _mm256_store_pd(lanes + 4, _mm256_add_pd(_mm256_load_pd(lanes + 4), high));
}

}  // namespace

Statistics statistics(std::span<const float> gradient) {
  alignas(32) double sums[kLanes] = {};
  alignas(32) double squares[kLanes] = {};
  const float* const at = gradient.data();
  const std::size_t elements = gradient.size();
  const __m256i no_sign = _mm256_set1_epi32(0x7FFFFFFF);
  __m256i max_bits[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (std::size_t block = 0; block < elements; block += kFold) {
    const std::size_t end = elements - block < kFold ? elements : block + kFold;
    __m256 sum[kRegisters] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 square[kRegisters] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
    for (std::size_t i = block; i < end; i += kLanes) {
      for (std::size_t r = 0; r < kRegisters; ++r) {
        if (r % 2 == 0) read_ahead(at, i + 8 * r);
        const __m256 g = _mm256_loadu_ps(at + i + 8 * r);
        sum[r] = _mm256_add_ps(sum[r], g);
        square[r] = _mm256_add_ps(square[r], _mm256_mul_ps(g, g));
        max_bits[r % 2] = _mm256_max_epi32(max_bits[r % 2], _mm256_and_si256(_mm256_castps_si256(g), no_sign));
      }
    }
    for (std::size_t r = 0; r < kRegisters; ++r) {
      fold(sums + 8 * r, sum[r]);
      fold(squares + 8 * r, square[r]);
    }
  }
  Statistics result;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    result.sum += sums[lane];
    result.sum_squares += squares[lane];
  }
  alignas(32) int largest[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(largest), _mm256_max_epi32(max_bits[0], max_bits[1]));
  for (int lane = 1; lane < 8; ++lane) largest[0] = largest[lane] > largest[0] ? largest[lane] : largest[0];
  result.max_abs = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(largest[0])));
  result.finite = largest[0] < 0x7F800000;  // the bits of +inf; NaNs lie above
  return result;
}

}  // namespace tg::kernels::avx2

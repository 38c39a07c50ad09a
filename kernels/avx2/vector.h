// What the shared x86 bodies need of a register of this instruction set. Everything has internal linkage, so that no
// object of another instruction set can end up with this code.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/constants.h"

namespace tg::kernels::avx2 {
namespace {

struct Floats {
  static constexpr std::size_t kWidth = 8;
  __m256 v;

  static Floats all(float x) { return {_mm256_set1_ps(x)}; }
  static Floats load(const void* at) { return {_mm256_loadu_ps(static_cast<const float*>(at))}; }
  static Floats from(const float* at) { return load(at); }
  static Floats from(const std::int8_t* at) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))))};
  }
  void store(float* at) const { _mm256_storeu_ps(at, v); }
  void stream(float* at) const { _mm256_stream_ps(at, v); }  // past the caches; aligned to the register
  static Floats load_float16(const std::byte* at) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)))};
  }
  void store_float16(std::byte* at) const {
    const __m128i float16 = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), float16);
  }
  // b where the mask's bit is set, else a; the first kWidth bits count.
  friend Floats chosen(Floats a, Floats b, std::uint64_t mask) {
    const __m256i bit_of = _mm256_set_epi32(128, 64, 32, 16, 8, 4, 2, 1);
    const __m256i set = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask)), bit_of), bit_of);
    return {_mm256_blendv_ps(a.v, b.v, _mm256_castsi256_ps(set))};
  }
  friend bool has_nan(Floats a) { return _mm256_movemask_ps(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)) != 0; }
  friend Floats canonical(Floats a) {  // replaces every NaN by the canonical one
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(kCanonicalNan));
    return {_mm256_blendv_ps(a.v, nan, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))};
  }
  friend Floats operator+(Floats a, Floats b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend Floats operator-(Floats a, Floats b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend Floats operator*(Floats a, Floats b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend Floats operator/(Floats a, Floats b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend Floats square_root(Floats a) { return {_mm256_sqrt_ps(a.v)}; }
};

// 64-bit lanes.
struct Words {
  static constexpr std::size_t kWidth = 4;
  __m256i v;

  static Words all(std::uint64_t x) { return {_mm256_set1_epi64x(static_cast<long long>(x))}; }
  static Words count_from(std::uint64_t x) { return all(x) + Words{_mm256_set_epi64x(3, 2, 1, 0)}; }
  static Words bits_of(const float* at) {  // zero-extended
    return {_mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)))};
  }
  static Words product(Words a, Words b) { return {_mm256_mul_epu32(a.v, b.v)}; }  // multiplies the low halves
  Words high() const { return {_mm256_srli_epi64(v, 32)}; }
  std::uint64_t total() const {
    alignas(32) std::uint64_t lanes[kWidth];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), v);
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
  friend Words operator+(Words a, Words b) { return {_mm256_add_epi64(a.v, b.v)}; }
  friend Words operator^(Words a, Words b) { return {_mm256_xor_si256(a.v, b.v)}; }
  friend Words operator|(Words a, Words b) { return {_mm256_or_si256(a.v, b.v)}; }
};

// 64 sums in memory, two registers of 32, addressed by the masks of a bit plane's word.
struct Sums {
  static constexpr int kHalf = 32;

  static __m256i load(const std::int8_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
  static void store(std::int8_t* at, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v); }

  // Byte b is -1 where bit b of the mask is set, else 0.
  static __m256i spread(std::uint64_t mask) {
    const __m256i copies = _mm256_set1_epi32(static_cast<int>(mask));
    const __m256i byte_of = _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0);
    const __m256i bit_of = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201U));
    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(copies, byte_of), bit_of), bit_of);
  }
  static std::uint64_t gather(__m256i low, __m256i high) {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
           std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << kHalf;
  }

  static void add(std::int8_t* at, std::uint64_t plus, std::uint64_t minus) {
    store(at, _mm256_add_epi8(_mm256_sub_epi8(load(at), spread(plus)), spread(minus)));
    at += kHalf;
    store(at, _mm256_add_epi8(_mm256_sub_epi8(load(at), spread(plus >> kHalf)), spread(minus >> kHalf)));
  }
  // `negative` is a subset of `nonzero`.
  static void add_codes(std::int8_t* at, std::uint64_t nonzero, std::uint64_t negative) {
    add(at, nonzero & ~negative, negative);
  }
  // Digit k of the magnitudes is worth 2^k and is digits[k * stride]; `negative` is a subset of the nonzero.
  static void set(std::int8_t* at, const std::uint64_t* digits, std::size_t stride, int used, std::uint64_t negative) {
    __m256i low = _mm256_setzero_si256(), high = _mm256_setzero_si256();
    for (int digit = 0; digit < used; ++digit, digits += stride) {
      const __m256i worth = _mm256_set1_epi8(static_cast<char>(1 << digit));
      low = _mm256_or_si256(low, _mm256_and_si256(spread(*digits), worth));
      high = _mm256_or_si256(high, _mm256_and_si256(spread(*digits >> kHalf), worth));
    }
    store(at, negated(low, spread(negative)));
    store(at + kHalf, negated(high, spread(negative >> kHalf)));
  }
  static __m256i negated(__m256i sums, __m256i where) { return _mm256_sub_epi8(_mm256_xor_si256(sums, where), where); }
  static std::uint64_t nonzero(const std::int8_t* at) {
    const __m256i zero = _mm256_setzero_si256();
    return ~gather(_mm256_cmpeq_epi8(load(at), zero), _mm256_cmpeq_epi8(load(at + kHalf), zero));
  }
  static std::uint64_t negative(const std::int8_t* at) { return gather(load(at), load(at + kHalf)); }
  static std::uint64_t above(const std::int8_t* at, int level) {  // |sum| > level
    const __m256i levels = _mm256_set1_epi8(static_cast<char>(level));
    return gather(_mm256_cmpgt_epi8(_mm256_abs_epi8(load(at)), levels),
                  _mm256_cmpgt_epi8(_mm256_abs_epi8(load(at + kHalf)), levels));
  }
};

}  // namespace
}  // namespace tg::kernels::avx2

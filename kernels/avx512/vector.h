// What the shared x86 bodies need of a register of this instruction set. Everything has internal linkage, so that no
// object of another instruction set can end up with this code.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/constants.h"

namespace tg::kernels::avx512 {
namespace {

struct Floats {
  static constexpr std::size_t kWidth = 16;
  __m512 v;

  static Floats all(float x) { return {_mm512_set1_ps(x)}; }
  static Floats load(const void* at) { return {_mm512_loadu_ps(at)}; }
  static Floats from(const float* at) { return load(at); }
  static Floats from(const std::int8_t* at) {
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))))};
  }
  void store(float* at) const { _mm512_storeu_ps(at, v); }
  void stream(float* at) const { _mm512_stream_ps(at, v); }  // past the caches; aligned to the register
  static Floats load_float16(const std::byte* at) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)))};
  }
  void store_float16(std::byte* at) const {
    const __m256i float16 = _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), float16);
  }
  // b where the mask's bit is set, else a; the first kWidth bits count.
  friend Floats chosen(Floats a, Floats b, std::uint64_t mask) {
    return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), a.v, b.v)};
  }
  friend bool has_nan(Floats a) { return _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q) != 0; }
  friend Floats canonical(Floats a) {  // replaces every NaN by the canonical one
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(kCanonicalNan));
    return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), a.v, nan)};
  }
  friend Floats operator+(Floats a, Floats b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend Floats operator-(Floats a, Floats b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend Floats operator*(Floats a, Floats b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend Floats operator/(Floats a, Floats b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend Floats square_root(Floats a) { return {_mm512_sqrt_ps(a.v)}; }
};

// 64-bit lanes.
struct Words {
  static constexpr std::size_t kWidth = 8;
  __m512i v;

  static Words all(std::uint64_t x) { return {_mm512_set1_epi64(static_cast<long long>(x))}; }
  static Words count_from(std::uint64_t x) { return all(x) + Words{_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)}; }
  static Words bits_of(const float* at) {  // zero-extended
    return {_mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)))};
  }
  static Words product(Words a, Words b) { return {_mm512_mul_epu32(a.v, b.v)}; }  // multiplies the low halves
  Words high() const { return {_mm512_srli_epi64(v, 32)}; }
  // Modulo 2^64; _mm512_reduce_add_epi64 adds signed numbers, which must not overflow.
  std::uint64_t total() const {
    alignas(64) std::uint64_t lanes[kWidth];
    _mm512_store_si512(lanes, v);
    std::uint64_t sum = 0;
    for (const std::uint64_t lane : lanes) sum += lane;
    return sum;
  }
  friend Words operator+(Words a, Words b) { return {_mm512_add_epi64(a.v, b.v)}; }
  friend Words operator^(Words a, Words b) { return {_mm512_xor_si512(a.v, b.v)}; }
  friend Words operator|(Words a, Words b) { return {_mm512_or_si512(a.v, b.v)}; }
};

// 64 sums in memory, addressed by the masks of a bit plane's word.
struct Sums {
  static __m512i load(const std::int8_t* at) { return _mm512_loadu_si512(at); }

  static void add(std::int8_t* at, std::uint64_t plus, std::uint64_t minus) {
    const __m512i one = _mm512_set1_epi8(1);
    const __m512i raised = _mm512_mask_add_epi8(load(at), plus, load(at), one);
    _mm512_storeu_si512(at, _mm512_mask_sub_epi8(raised, minus, raised, one));
  }
  // `negative` is a subset of `nonzero`.
  static void add_codes(std::int8_t* at, std::uint64_t nonzero, std::uint64_t negative) {
    const __m512i raised = _mm512_mask_add_epi8(load(at), nonzero, load(at), _mm512_set1_epi8(1));
    _mm512_storeu_si512(at, _mm512_mask_sub_epi8(raised, negative, raised, _mm512_set1_epi8(2)));
  }
  // Digit k of the magnitudes is worth 2^k and is digits[k * stride]; `negative` is a subset of the nonzero.
  static void set(std::int8_t* at, const std::uint64_t* digits, std::size_t stride, int used, std::uint64_t negative) {
    __m512i sums = _mm512_maskz_mov_epi8(digits[0], _mm512_set1_epi8(1));
    for (int digit = 1; digit < used; ++digit) {
      digits += stride;
      sums = _mm512_mask_add_epi8(sums, *digits, sums, _mm512_set1_epi8(static_cast<char>(1 << digit)));
    }
    _mm512_storeu_si512(at, _mm512_mask_sub_epi8(sums, negative, _mm512_setzero_si512(), sums));
  }
  static std::uint64_t nonzero(const std::int8_t* at) { return _mm512_test_epi8_mask(load(at), load(at)); }
  static std::uint64_t negative(const std::int8_t* at) { return _mm512_movepi8_mask(load(at)); }
  static std::uint64_t above(const std::int8_t* at, int level) {  // |sum| > level
    return _mm512_cmpgt_epi8_mask(_mm512_abs_epi8(load(at)), _mm512_set1_epi8(static_cast<char>(level)));
  }
};

}  // namespace
}  // namespace tg::kernels::avx512

// The states of 64 lanes of the entropy coder: a plane of low bytes and one of high bytes, in the order of the lanes.
// Even and odd lanes go through the 16-bit arithmetic apart, so that no byte ever changes its place. Needs VBMI2, and
// internal linkage.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/rans.h"

namespace tg::kernels::avx512 {
namespace {

inline constexpr std::uint64_t kEvenBits = 0x5555555555555555;
inline constexpr int kAndOr = 0xEA;  // (a & b) | c

inline __m512i all_words(unsigned x) { return _mm512_set1_epi16(static_cast<short>(x)); }
inline __m512i even_bytes() { return all_words(0x00FF); }
inline __m512i odd_bytes() { return all_words(0xFF00); }

struct States {
  __m512i low, high;

  // The rarer symbol has [0, rare) of the 256, the other the rest.
  struct Encoding {
    explicit Encoding(unsigned rare) : Encoding(rare, rans_division(rare), rans_division(256 - rare)) {}
    Encoding(unsigned rare, const RansDivision& by_rare, const RansDivision& by_common)
        : rare_bytes(_mm512_set1_epi8(static_cast<char>(rare))),
          common_bytes(_mm512_set1_epi8(static_cast<char>(256 - rare))),
          rare_words(all_words(rare)),
          multiplier{all_words(by_common.multiplier), all_words(by_rare.multiplier)},
          increment{all_words(by_common.increment), all_words(by_rare.increment)},
          right{all_words(by_common.shift), all_words(by_rare.shift)},
          left{all_words(8U - by_common.shift), all_words(8U - by_rare.shift)} {}
    __m512i rare_bytes, common_bytes, rare_words;
    __m512i multiplier[2], increment[2], right[2], left[2];  // [1] is the rarer symbol's
  };
  struct Decoding {
    explicit Decoding(unsigned rare)
        : rare_bytes(_mm512_set1_epi8(static_cast<char>(rare))),
          even{all_words(256 - rare), all_words(rare)},
          odd{all_words((256 - rare) << 8), all_words(rare << 8)} {}
    __m512i rare_bytes;
    __m512i even[2], odd[2];
  };

  static States load(const std::byte* low, const std::byte* high) {
    return {_mm512_loadu_si512(low), _mm512_loadu_si512(high)};
  }
  void store(std::byte* low_to, std::byte* high_to) const {
    _mm512_storeu_si512(low_to, low);
    _mm512_storeu_si512(high_to, high);
  }

  static __m512i quotients(__m512i x, __mmask32 rare, const Encoding& e) {
    const __m512i raised = _mm512_add_epi16(x, _mm512_mask_blend_epi16(rare, e.increment[0], e.increment[1]));
    return _mm512_mulhi_epu16(raised, _mm512_mask_blend_epi16(rare, e.multiplier[0], e.multiplier[1]));
  }

  // Codes 64 bits (a set bit is the rarer symbol), writes 64 bytes at `at` and returns how many of them count.
  std::size_t put(std::uint64_t bits, const Encoding& e, std::byte* at) {
    const __mmask64 rare = bits;
    const __mmask64 over = _mm512_cmpge_epu8_mask(high, _mm512_mask_blend_epi8(rare, e.common_bytes, e.rare_bytes));
    _mm512_storeu_si512(at, _mm512_maskz_compress_epi8(over, low));
    low = _mm512_mask_mov_epi8(low, over, high);
    high = _mm512_mask_mov_epi8(high, over, _mm512_setzero_si512());
    const __m512i even = _mm512_ternarylogic_epi64(low, even_bytes(), _mm512_slli_epi16(high, 8), kAndOr);
    const __m512i odd = _mm512_ternarylogic_epi64(high, odd_bytes(), _mm512_srli_epi16(low, 8), kAndOr);
    const __mmask32 rare_even = static_cast<__mmask32>(_pext_u64(bits, kEvenBits));
    const __mmask32 rare_odd = static_cast<__mmask32>(_pext_u64(bits, ~kEvenBits));
    // The quotients are bytes: those of the even lanes end up in the even bytes, those of the odd lanes in the odd
    // ones.
    const __m512i even_quotients =
        _mm512_srlv_epi16(quotients(even, rare_even, e), _mm512_mask_blend_epi16(rare_even, e.right[0], e.right[1]));
    const __m512i odd_quotients =
        _mm512_sllv_epi16(quotients(odd, rare_odd, e), _mm512_mask_blend_epi16(rare_odd, e.left[0], e.left[1]));
    high = _mm512_ternarylogic_epi64(odd_quotients, odd_bytes(), even_quotients, kAndOr);
    // x % rare = x - quotient * rare; x % (256 - rare) + rare = x + quotient * rare + rare, modulo 256.
    const __m512i products =
        _mm512_ternarylogic_epi64(_mm512_mullo_epi16(high, e.rare_words), even_bytes(),
                                  _mm512_mullo_epi16(_mm512_and_si512(high, odd_bytes()), e.rare_words), kAndOr);
    const __m512i common = _mm512_add_epi8(low, _mm512_add_epi8(products, e.rare_bytes));
    low = _mm512_mask_sub_epi8(common, rare, low, products);
    return static_cast<std::size_t>(_mm_popcnt_u64(over));
  }

  // The opposite of put(): returns the bits. The states that are then missing() a byte get it from refill().
  std::uint64_t take(const Decoding& d) {
    const __mmask64 common = _mm512_cmpge_epu8_mask(low, d.rare_bytes);
    const __mmask64 rare = ~common;
    const __m512i rest = _mm512_mask_sub_epi8(low, common, low, d.rare_bytes);
    // One byte of these 16-bit constants is zero, so that one blend of bytes serves both.
    const __m512i even_frequency = _mm512_mask_blend_epi8(rare, d.even[0], d.even[1]);
    const __m512i odd_frequency = _mm512_mask_blend_epi8(rare, d.odd[0], d.odd[1]);
    const __m512i even = _mm512_add_epi16(_mm512_mullo_epi16(_mm512_and_si512(high, even_bytes()), even_frequency),
                                          _mm512_and_si512(rest, even_bytes()));
    const __m512i odd = _mm512_add_epi16(_mm512_mulhi_epu16(_mm512_and_si512(high, odd_bytes()), odd_frequency),
                                         _mm512_srli_epi16(rest, 8));
    high = _mm512_ternarylogic_epi64(odd, odd_bytes(), _mm512_srli_epi16(even, 8), kAndOr);
    low = _mm512_ternarylogic_epi64(even, even_bytes(), _mm512_slli_epi16(odd, 8), kAndOr);
    return rare;
  }
  std::uint64_t missing() const { return _mm512_testn_epi8_mask(high, high); }
  // Reads 64 bytes at `from`, of which the first ones count.
  void refill(const std::byte* from, std::uint64_t missing) {
    high = _mm512_mask_mov_epi8(high, missing, low);
    low = _mm512_mask_expand_epi8(low, missing, _mm512_loadu_si512(from));
  }
};

}  // namespace
}  // namespace tg::kernels::avx512

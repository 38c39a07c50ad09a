// The states of 64 lanes of the entropy coder: planes of low and of high bytes, in the order of the lanes, two
// registers each. Even and odd lanes go through the 16-bit arithmetic apart, so that no byte ever changes its place.
// Bytes come and go eight at a time, by pext and pdep. Internal linkage.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/avx2/vector.h"
#include "kernels/rans.h"

namespace tg::kernels::avx2 {
namespace {

inline __m256i all_words(unsigned x) { return _mm256_set1_epi16(static_cast<short>(x)); }
inline __m256i even_bytes() { return all_words(0x00FF); }
inline __m256i odd_bytes() { return all_words(0xFF00); }

// Two values: by(mask) takes the second in the bytes or words that are set in the mask, else the first.
struct Choice {
  Choice(__m256i a, __m256i b) : first(a), change(_mm256_xor_si256(a, b)) {}
  __m256i by(__m256i mask) const { return _mm256_xor_si256(first, _mm256_and_si256(change, mask)); }
  __m256i first, change;
};
inline Choice word_choice(unsigned first, unsigned second) { return {all_words(first), all_words(second)}; }
inline Choice byte_choice(unsigned first, unsigned second) {
  return {_mm256_set1_epi8(static_cast<char>(first)), _mm256_set1_epi8(static_cast<char>(second))};
}

struct States {
  static constexpr std::size_t kHalf = 32;
  __m256i low[2], high[2];

  // The rarer symbol has [0, rare) of the 256, the other the rest. A Choice holds (the other's value, the rarer's).
  struct Encoding {
    explicit Encoding(unsigned rare) : Encoding(rare, rans_division(rare), rans_division(256 - rare)) {}
    Encoding(unsigned rare, const RansDivision& by_rare, const RansDivision& by_common)
        : rare_bytes(_mm256_set1_epi8(static_cast<char>(rare))),
          rare_words(all_words(rare)),
          frequency(byte_choice(256 - rare, rare)),
          multiplier(word_choice(by_common.multiplier, by_rare.multiplier)),
          increment(word_choice(by_common.increment, by_rare.increment)),
          // AVX2 cannot shift each word by a count of its own: shifts to the left are products.
          left(word_choice(1U << (8 - by_common.shift), 1U << (8 - by_rare.shift))) {}
    __m256i rare_bytes, rare_words;
    Choice frequency, multiplier, increment, left;
  };
  struct Decoding {
    explicit Decoding(unsigned rare)
        : rare_bytes(_mm256_set1_epi8(static_cast<char>(rare))),
          even(word_choice(256 - rare, rare)),
          odd(word_choice((256 - rare) << 8, rare << 8)) {}
    __m256i rare_bytes;
    Choice even, odd;
  };

  static __m256i load_half(const std::byte* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
  static void store_half(std::byte* at, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), v); }
  static States load(const std::byte* low, const std::byte* high) {
    return {{load_half(low), load_half(low + kHalf)}, {load_half(high), load_half(high + kHalf)}};
  }
  void store(std::byte* low_to, std::byte* high_to) const {
    for (std::size_t h = 0; h < 2; ++h) {
      store_half(low_to + h * kHalf, low[h]);
      store_half(high_to + h * kHalf, high[h]);
    }
  }

  static __m256i joined(__m256i odd, __m256i even) {  // the odd bytes of `odd` beside the even ones of `even`
    return _mm256_or_si256(_mm256_and_si256(odd, odd_bytes()), even);
  }
  // The quotients are in the upper bytes, with leftovers below.
  static __m256i quotients(__m256i x, __m256i rare, const Encoding& e) {
    const __m256i raised = _mm256_add_epi16(x, e.increment.by(rare));
    return _mm256_mullo_epi16(_mm256_mulhi_epu16(raised, e.multiplier.by(rare)), e.left.by(rare));
  }

  // Codes 64 bits (a set bit is the rarer symbol), writes up to 64 bytes at `at` and returns how many of them count.
  std::size_t put(std::uint64_t bits, const Encoding& e, std::byte* at) {
    std::byte* end = at;
    for (std::size_t h = 0; h < 2; ++h) end = put_half(h, Sums::spread(bits >> h * kHalf), e, end);
    return static_cast<std::size_t>(end - at);
  }
  std::byte* put_half(std::size_t h, __m256i rare, const Encoding& e, std::byte* at) {
    const __m256i frequency = e.frequency.by(rare);
    const __m256i over = _mm256_cmpeq_epi8(_mm256_max_epu8(high[h], frequency), high[h]);
    at = compress_to(at, low[h], over);
    const __m256i lows = _mm256_blendv_epi8(low[h], high[h], over);
    const __m256i highs = _mm256_andnot_si256(over, high[h]);
    const __m256i even = _mm256_or_si256(_mm256_and_si256(lows, even_bytes()), _mm256_slli_epi16(highs, 8));
    const __m256i odd = joined(highs, _mm256_srli_epi16(lows, 8));
    const __m256i even_quotients = quotients(even, _mm256_srai_epi16(_mm256_slli_epi16(rare, 8), 8), e);
    const __m256i odd_quotients = quotients(odd, _mm256_srai_epi16(rare, 8), e);
    high[h] = joined(odd_quotients, _mm256_srli_epi16(even_quotients, 8));
    // x % rare = x - quotient * rare; x % (256 - rare) + rare = x + quotient * rare + rare, modulo 256.
    const __m256i even_products = _mm256_mullo_epi16(high[h], e.rare_words);
    const __m256i odd_products = _mm256_mullo_epi16(_mm256_and_si256(high[h], odd_bytes()), e.rare_words);
    const __m256i products = joined(odd_products, _mm256_and_si256(even_products, even_bytes()));
    const __m256i common = _mm256_add_epi8(lows, _mm256_add_epi8(products, e.rare_bytes));
    low[h] = _mm256_blendv_epi8(common, _mm256_sub_epi8(lows, products), rare);
    return at;
  }
  static std::byte* compress_to(std::byte* at, __m256i bytes, __m256i where) {
    alignas(32) std::uint64_t from[4], mask[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(from), bytes);
    _mm256_store_si256(reinterpret_cast<__m256i*>(mask), where);
    for (std::size_t g = 0; g < 4; ++g) {
      const std::uint64_t taken = _pext_u64(from[g], mask[g]);
      std::memcpy(at, &taken, sizeof taken);
      at += _mm_popcnt_u64(mask[g]) / 8;
    }
    return at;
  }

  // The opposite of put(): returns the bits. The states that are then missing() a byte get it from refill().
  std::uint64_t take(const Decoding& d) {
    __m256i common[2];
    for (std::size_t h = 0; h < 2; ++h) {
      common[h] = _mm256_cmpeq_epi8(_mm256_max_epu8(low[h], d.rare_bytes), low[h]);
      const __m256i rare = _mm256_xor_si256(common[h], _mm256_set1_epi8(-1));
      const __m256i rest = _mm256_sub_epi8(low[h], _mm256_and_si256(common[h], d.rare_bytes));
      const __m256i even_products = _mm256_mullo_epi16(_mm256_and_si256(high[h], even_bytes()), d.even.by(rare));
      const __m256i odd_products = _mm256_mulhi_epu16(_mm256_and_si256(high[h], odd_bytes()), d.odd.by(rare));
      const __m256i even = _mm256_add_epi16(even_products, _mm256_and_si256(rest, even_bytes()));
      const __m256i odd = _mm256_add_epi16(odd_products, _mm256_srli_epi16(rest, 8));
      high[h] = joined(odd, _mm256_srli_epi16(even, 8));
      low[h] = _mm256_or_si256(_mm256_and_si256(even, even_bytes()), _mm256_slli_epi16(odd, 8));
    }
    return ~Sums::gather(common[0], common[1]);
  }
  __m256i empty(std::size_t h) const { return _mm256_cmpeq_epi8(high[h], _mm256_setzero_si256()); }
  std::uint64_t missing() const { return Sums::gather(empty(0), empty(1)); }
  // Reads up to 64 bytes at `from`, of which the first ones count.
  void refill(const std::byte* from, std::uint64_t) {
    for (std::size_t h = 0; h < 2; ++h) {
      const __m256i where = empty(h);
      alignas(32) std::uint64_t mask[4];
      long long bytes[4];  // stays in registers: one load that spans four stores would wait for all of them
      _mm256_store_si256(reinterpret_cast<__m256i*>(mask), where);
      for (std::size_t g = 0; g < 4; ++g) {
        std::uint64_t next;
        std::memcpy(&next, from, sizeof next);
        bytes[g] = static_cast<long long>(_pdep_u64(next, mask[g]));
        from += _mm_popcnt_u64(mask[g]) / 8;
      }
      high[h] = _mm256_blendv_epi8(high[h], low[h], where);
      const __m256i filled = _mm256_set_epi64x(bytes[3], bytes[2], bytes[1], bytes[0]);
      low[h] = _mm256_blendv_epi8(low[h], filled, where);
    }
  }
};

}  // namespace
}  // namespace tg::kernels::avx2

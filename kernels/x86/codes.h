// Encodes and decodes codes with pext and pdep; `Sums` is the instruction set's (vector.h). Internal linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/require.h"
#include "kernels/x86/bit_stream.h"

namespace tg::kernels {
namespace {

inline std::size_t put_codes(const std::uint64_t* nonzero, const std::uint64_t* negative, std::size_t words,
                             std::byte* payload) {
  BitWriter signs(payload + words * sizeof(std::uint64_t));
  for (std::size_t w = 0; w < words; ++w) {
    store_word(payload + w * sizeof(std::uint64_t), nonzero[w]);
    signs.put(_pext_u64(negative[w], nonzero[w]), bits_in(nonzero[w]));
  }
  return static_cast<std::size_t>(signs.finish() - payload);
}

inline bool holds_codes(const std::byte* payload, std::size_t bytes, std::size_t words) {
  const std::size_t mask_bytes = words * sizeof(std::uint64_t);
  if (bytes < mask_bytes) return false;
  std::size_t ones = 0;
  for (std::size_t w = 0; w < words; ++w) ones += bits_in(load_word(payload + w * sizeof(std::uint64_t)));
  const std::size_t sign_bytes = bytes - mask_bytes;
  return sign_bytes == (ones + 7) / 8 && holds_plane(payload + mask_bytes, sign_bytes, ones);
}

// Calls take(word index, nonzero, negative) for each word of a payload that holds_codes() has accepted.
template <class Take>
inline void take_codes(const std::byte* payload, std::size_t bytes, std::size_t words, Take take) {
  BitReader signs(payload, bytes, words * sizeof(std::uint64_t));
  for (std::size_t w = 0; w < words; ++w) {
    const std::uint64_t nonzero = load_word(payload + w * sizeof(std::uint64_t));
    take(w, nonzero, _pdep_u64(signs.take(bits_in(nonzero)), nonzero));
  }
}

inline std::size_t encode_codes_x86(ConstPlanes codes, std::span<std::byte> payload) {
  require_same_size(codes.nonzero.size(), codes.negative.size());
  require_capacity(payload.size(), codes_bound(codes.nonzero.size() * kWordBits));
  if (codes.nonzero.empty()) return 0;
  return put_codes(codes.nonzero.data(), codes.negative.data(), codes.nonzero.size(), payload.data());
}

inline bool decode_codes_x86(std::span<const std::byte> payload, Planes codes) {
  require_same_size(codes.nonzero.size(), codes.negative.size());
  const std::size_t words = codes.nonzero.size();
  if (!holds_codes(payload.data(), payload.size(), words)) return false;
  std::uint64_t* const nonzero_at = codes.nonzero.data();
  std::uint64_t* const negative_at = codes.negative.data();
  take_codes(payload.data(), payload.size(), words, [&](std::size_t w, std::uint64_t nonzero, std::uint64_t negative) {
    nonzero_at[w] = nonzero;
    negative_at[w] = negative;
  });
  return true;
}

template <class Sums>
inline bool accumulate_codes_x86(std::span<const std::byte> payload, std::span<std::int8_t> sums) {
  const std::size_t words = sums.size() / kWordBits;
  if (!holds_codes(payload.data(), payload.size(), words)) return false;
  std::int8_t* const at = sums.data();
  take_codes(payload.data(), payload.size(), words, [&](std::size_t w, std::uint64_t nonzero, std::uint64_t negative) {
    Sums::add(at + w * kWordBits, nonzero & ~negative, negative);
  });
  return true;
}

template <class Sums>
inline void accumulate_planes_x86(ConstPlanes codes, std::span<std::int8_t> sums) {
  require_same_size(sums.size(), codes.nonzero.size() * kWordBits);
  require_same_size(sums.size(), codes.negative.size() * kWordBits);
  const std::uint64_t* const nonzero = codes.nonzero.data();
  const std::uint64_t* const negative = codes.negative.data();
  std::int8_t* const at = sums.data();
  const std::size_t words = sums.size() / kWordBits;
  for (std::size_t w = 0; w < words; ++w) {
    Sums::add(at + w * kWordBits, nonzero[w] & ~negative[w], nonzero[w] & negative[w]);
  }
}

inline std::uint64_t count_x86(std::span<const std::uint64_t> plane) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : plane) ones += bits_in(word);
  return ones;
}

}  // namespace
}  // namespace tg::kernels

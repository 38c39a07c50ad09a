#include <bit>
#include <cstring>

#include "kernels/require.h"
#include "kernels/scalar/bit_stream.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {
namespace {

static_assert(std::endian::native == std::endian::little, "masks travel as little-endian words");

std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

bool holds_codes(std::span<const std::byte> payload, std::size_t words) {
  const std::size_t mask_bytes = words * sizeof(std::uint64_t);
  if (payload.size() < mask_bytes) return false;
  std::size_t ones = 0;
  for (std::size_t w = 0; w < words; ++w) {
    ones += static_cast<std::size_t>(std::popcount(load_word(&payload[w * sizeof(std::uint64_t)])));
  }
  const auto signs = payload.subspan(mask_bytes);
  return signs.size() == (ones + 7) / 8 && holds_plane(signs, ones);
}

}  // namespace

std::size_t encode_codes(ConstPlanes codes, std::span<std::byte> payload) {
  const std::size_t mask_bytes = codes.nonzero.size_bytes();
  require_same_size(codes.nonzero.size(), codes.negative.size());
  require_capacity(payload.size(), codes_bound(codes.nonzero.size() * kWordBits));
  if (mask_bytes == 0) return 0;
  std::memcpy(payload.data(), codes.nonzero.data(), mask_bytes);
  BitWriter signs(payload.data() + mask_bytes);
  for (std::size_t i = 0; i < codes.nonzero.size() * kWordBits; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i % kWordBits;
    if (codes.nonzero[i / kWordBits] & bit) signs.put((codes.negative[i / kWordBits] & bit) != 0);
  }
  return mask_bytes + signs.bytes();
}

bool decode_codes(std::span<const std::byte> payload, Planes codes) {
  const std::size_t words = codes.nonzero.size();
  require_same_size(words, codes.negative.size());
  if (!holds_codes(payload, words)) return false;
  BitReader signs(payload.data() + words * sizeof(std::uint64_t));
  for (std::size_t w = 0; w < words; ++w) {
    const std::uint64_t nonzero = load_word(&payload[w * sizeof(std::uint64_t)]);
    std::uint64_t negative = 0;
    for (std::size_t b = 0; b < kWordBits; ++b) {
      if (nonzero >> b & 1) negative |= static_cast<std::uint64_t>(signs.next()) << b;
    }
    codes.nonzero[w] = nonzero;
    codes.negative[w] = negative;
  }
  return true;
}

bool accumulate_codes(std::span<const std::byte> payload, std::span<std::int8_t> sums) {
  const std::size_t words = sums.size() / kWordBits;
  if (!holds_codes(payload, words)) return false;
  BitReader signs(payload.data() + words * sizeof(std::uint64_t));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if ((static_cast<unsigned>(payload[i / 8]) >> i % 8 & 1U) == 0) continue;
    sums[i] = static_cast<std::int8_t>(sums[i] + (signs.next() ? -1 : 1));
  }
  return true;
}

void accumulate_planes(ConstPlanes codes, std::span<std::int8_t> sums) {
  require_same_size(sums.size(), codes.nonzero.size() * kWordBits);
  require_same_size(sums.size(), codes.negative.size() * kWordBits);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i % kWordBits;
    if ((codes.nonzero[i / kWordBits] & bit) == 0) continue;
    sums[i] = static_cast<std::int8_t>(sums[i] + ((codes.negative[i / kWordBits] & bit) != 0 ? -1 : 1));
  }
}

std::uint64_t count(std::span<const std::uint64_t> plane) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : plane) ones += static_cast<std::uint64_t>(std::popcount(word));
  return ones;
}

}  // namespace tg::kernels::scalar

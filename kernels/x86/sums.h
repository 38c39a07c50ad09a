// Encodes sums as unary planes and decodes them with pext and pdep; `Sums` is the instruction set's (vector.h).
// Internal linkage.
#pragma once

#include <bit>

#include "kernels/kernels.h"
#include "kernels/require.h"
#include "kernels/x86/bit_stream.h"

namespace tg::kernels {
namespace {

// The planes of all levels are read or written side by side, kSpanWords words of elements at a time, so that the sums
// stay in the first level cache while the levels pass over them.
inline constexpr std::size_t kSpanWords = 32;

// The planes being written. The start of plane m is known only at the end: until then the plane grows where it would
// start if every |sum| were `members`, which the bound has room for, whole words included.
class SumsWriter {
 public:
  SumsWriter(std::size_t elements, int members, std::byte* begin)
      : begin_(begin), plane_bytes_(elements / 8), members_(members), signs_(begin + plane_bytes_) {}

  // Writes `words` <= kSpanWords words of sums, starting at element `first`.
  template <class Sums>
  void put(const std::int8_t* from, std::size_t first, std::size_t words) {
    std::uint64_t here[kSpanWords];  // |sum| >= level
    std::uint64_t any = 0;
    BitWriter signs = signs_;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t nonzero = Sums::nonzero(from + w * kWordBits);
      store_word(begin_ + first / 8 + w * sizeof nonzero, nonzero);
      signs.put(_pext_u64(Sums::negative(from + w * kWordBits), nonzero), bits_in(nonzero));
      here[w] = nonzero;
      any |= nonzero;
    }
    signs_ = signs;
    for (int level = 1; level < members_ && any != 0; ++level) any = put_level<Sums>(from, level, here, words);
  }
  // Closes the gaps between the planes and returns the byte after the last one.
  std::byte* finish() {
    std::byte* at = signs_.finish();
    for (int level = 1; level <= levels_; ++level) {
      const std::byte* const plane = room(level);
      const std::size_t bytes = static_cast<std::size_t>(planes_[level].finish() - plane);
      std::memmove(at, plane, bytes);
      at += bytes;
    }
    return at;
  }

 private:
  std::byte* room(int level) const { return begin_ + (static_cast<std::size_t>(level) + 1) * plane_bytes_; }

  // Returns a word that is 0 only if no |sum| is above the level.
  template <class Sums>
  std::uint64_t put_level(const std::int8_t* from, int level, std::uint64_t* here, std::size_t words) {
    if (level > levels_) planes_[levels_ = level] = BitWriter(room(level));
    BitWriter plane = planes_[level];
    std::uint64_t any = 0;
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t above = Sums::above(from + w * kWordBits, level);
      plane.put(_pext_u64(above, here[w]), bits_in(here[w]));
      here[w] = above;
      any |= above;
    }
    planes_[level] = plane;
    return any;
  }

  std::byte* begin_;
  std::size_t plane_bytes_;
  int members_;
  int levels_ = 0;  // level planes begun
  BitWriter signs_;
  BitWriter planes_[kMaxMembers];  // by level; [0] is unused
};

template <class Sums>
inline std::size_t encode_sums_x86(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload) {
  require_capacity(payload.size(), sums_bound(sums.size(), members));
  const std::size_t elements = sums.size();
  if (elements == 0) return 0;
  SumsWriter writer(elements, members, payload.data());
  for (std::size_t first = 0; first < elements; first += kSpanWords * kWordBits) {
    const std::size_t words = (elements - first) / kWordBits;
    writer.put<Sums>(sums.data() + first, first, words < kSpanWords ? words : kSpanWords);
  }
  return static_cast<std::size_t>(writer.finish() - payload.data());
}

inline std::size_t ones_in(const std::byte* at, std::size_t bytes) {
  std::size_t ones = 0;
  for (; bytes >= sizeof(std::uint64_t); at += sizeof(std::uint64_t), bytes -= sizeof(std::uint64_t)) {
    ones += bits_in(load_word(at));
  }
  std::byte rest[sizeof(std::uint64_t)] = {};
  if (bytes != 0) std::memcpy(rest, at, bytes);
  return ones + bits_in(load_word(rest));
}

// The bits of one plane for a span of elements. Bits close to the payload's end are copied, with zeros after them, so
// that take() need not check for the end.
class SpanReader {
 public:
  SpanReader(const std::byte* payload, std::size_t bytes, std::size_t first_bit)
      : at_(payload + first_bit / 8), next_(first_bit % 8) {
    const std::size_t left = bytes - first_bit / 8;
    if (left >= sizeof rest_) return;
    std::memset(rest_, 0, sizeof rest_);
    if (left > 0) std::memcpy(rest_, at_, left);
    at_ = rest_;
  }
  // Takes `count` bits and returns them with the bits that follow, which may be anything.
  std::uint64_t take(std::size_t count) {
    const std::byte* const word = at_ + next_ / 64 * sizeof(std::uint64_t);
    const std::size_t shift = next_ % 64;
    next_ += count;
    return load_word(word) >> shift | load_word(word + sizeof(std::uint64_t)) << 1 << (63 - shift);
  }
  // The number of bits taken, including those before the first in its byte.
  std::size_t taken() const { return next_; }

 private:
  const std::byte* at_;
  std::size_t next_;                                          // the next bit, counted from at_
  std::byte rest_[(kSpanWords + 2) * sizeof(std::uint64_t)];  // the last take() may start in the last word but one
};

// The planes of a payload, found by counting: the number of ones in a plane is the number of bits in the next.
class SumsReader {
 public:
  // False if the payload breaks the format.
  bool open(const std::byte* payload, std::size_t bytes, std::size_t elements, int members) {
    payload_ = payload;
    bytes_ = bytes;
    std::size_t at = elements / 8;
    if (bytes < at) return false;
    std::size_t reached = ones_in(payload, at);  // elements with |sum| >= level
    if (!holds_plane(payload + at, bytes - at, reached)) return false;
    next_[0] = at * 8;
    at += (reached + 7) / 8;
    for (int level = 1; level < members && reached > 0; ++level) {
      if (!holds_plane(payload + at, bytes - at, reached)) return false;
      next_[levels_ = level] = at * 8;
      const std::size_t plane_bytes = (reached + 7) / 8;
      reached = ones_in(payload + at, plane_bytes);
      at += plane_bytes;
    }
    return at == bytes;
  }

  // The magnitudes' binary digits come from the unary ones: element i's digit k is the parity of the levels that it
  // reaches among the multiples of 2^k.
  template <class Sums>
  void take(std::int8_t* to, std::size_t first, std::size_t words) {
    std::uint64_t digits[kDigits][kSpanWords];
    std::uint64_t negative[kSpanWords];
    std::uint64_t reached[2][kSpanWords];  // |sum| >= level, for two levels
    std::uint64_t any = 0;
    SpanReader signs(payload_, bytes_, next_[0]);
    for (std::size_t w = 0; w < words; ++w) {
      const std::uint64_t nonzero = load_word(payload_ + first / 8 + w * sizeof(std::uint64_t));
      negative[w] = _pdep_u64(signs.take(bits_in(nonzero)), nonzero);
      reached[1][w] = digits[0][w] = nonzero;
      any |= nonzero;
    }
    next_[0] = next_[0] / 8 * 8 + signs.taken();
    int used = 1;  // digits used so far
    int level = 2;
    for (; level <= levels_ + 1 && any != 0; ++level) {
      any = take_level(level - 1, reached[(level - 1) % 2], reached[level % 2], words);
      // One level late: a register load of words that were just stored one by one would stall.
      if (level > 2) used = add_digits(level - 1, reached[(level - 1) % 2], digits, used, words);
    }
    if (level > 2) used = add_digits(level - 1, reached[(level - 1) % 2], digits, used, words);
    for (std::size_t w = 0; w < words; ++w) {
      Sums::set(to + w * kWordBits, &digits[0][w], kSpanWords, used, negative[w]);
    }
  }

 private:
  static constexpr int kDigits = 7;
  static_assert(kMaxMembers < 1 << kDigits);

  // Returns a word that is 0 only if no |sum| is above the level.
  std::uint64_t take_level(int level, const std::uint64_t* here, std::uint64_t* above, std::size_t words) {
    SpanReader plane(payload_, bytes_, next_[level]);
    std::uint64_t any = 0;
    for (std::size_t w = 0; w < words; ++w) {
      above[w] = _pdep_u64(plane.take(bits_in(here[w])), here[w]);
      any |= above[w];
    }
    next_[level] = next_[level] / 8 * 8 + plane.taken();
    return any;
  }

  // Returns how many digits are used afterwards.
  static int add_digits(int level, const std::uint64_t* here, std::uint64_t (*digits)[kSpanWords], int used,
                        std::size_t words) {
    const int multiple = std::countr_zero(static_cast<unsigned>(level));  // the level is a multiple of 2^multiple
    if (multiple == used) {
      for (std::size_t w = 0; w < words; ++w) digits[used][w] = 0;
      ++used;
    }
    for (int digit = 0; digit <= multiple; ++digit) {
      for (std::size_t w = 0; w < words; ++w) digits[digit][w] ^= here[w];
    }
    return used;
  }

  const std::byte* payload_ = nullptr;
  std::size_t bytes_ = 0;
  int levels_ = 0;                 // number of level planes
  std::size_t next_[kMaxMembers];  // each plane's next bit in the payload, by level; [0] belongs to the signs
};

template <class Sums>
inline bool decode_sums_x86(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums) {
  require_members(members);
  const std::size_t elements = sums.size();
  SumsReader reader;
  if (!reader.open(payload.data(), payload.size(), elements, members)) return false;
  for (std::size_t first = 0; first < elements; first += kSpanWords * kWordBits) {
    const std::size_t words = (elements - first) / kWordBits;
    reader.take<Sums>(sums.data() + first, first, words < kSpanWords ? words : kSpanWords);
  }
  return true;
}

}  // namespace
}  // namespace tg::kernels

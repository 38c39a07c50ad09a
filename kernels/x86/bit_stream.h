// Writes up to 64 bits at a time into a stream of bits and reads them back, for the bodies that both x86 variants
// share. Internal linkage: every instruction set compiles its own copy.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tg::kernels {
namespace {

inline std::uint64_t load_word(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline void store_word(std::byte* at, std::uint64_t word) { std::memcpy(at, &word, sizeof word); }

inline std::size_t bits_in(std::uint64_t word) { return static_cast<std::size_t>(_mm_popcnt_u64(word)); }

// Stores whole words: once k words' worth of bits may have been put, k words of memory must exist. No branches: the
// number of bits of a word is as good as random.
class BitWriter {
 public:
  BitWriter() = default;
  explicit BitWriter(std::byte* at) : at_(at) {}

  // Appends the first `count` bits; the rest of `bits` is zero.
  void put(std::uint64_t bits, std::size_t count) {
    const std::uint64_t joined = pending_ | bits << filled_;
    const std::uint64_t carried = bits >> 1 >> (63 - filled_);
    store_word(at_, joined);
    filled_ += count;
    const std::size_t full = filled_ / 64;  // 0 or 1
    at_ += full * sizeof(std::uint64_t);
    pending_ = joined ^ ((joined ^ carried) & (0 - full));
    filled_ %= 64;
  }
  // Stores the bits that the last put carried over and returns the byte after the stream.
  std::byte* finish() {
    if (filled_ > 0) store_word(at_, pending_);
    return at_ + (filled_ + 7) / 8;
  }

 private:
  std::byte* at_ = nullptr;
  std::uint64_t pending_ = 0;
  std::size_t filled_ = 0;  // bits in pending_
};

// Reads nothing past the `bytes` bytes at `begin`; later bits are zero.
class BitReader {
 public:
  BitReader() = default;
  BitReader(const std::byte* begin, std::size_t bytes, std::size_t first)
      : begin_(begin), bytes_(bytes), safe_(bytes > 8 ? bytes - 8 : 0), next_(first * 8) {}

  // Takes `count` bits and returns them with the bits that follow, which may be anything.
  std::uint64_t take(std::size_t count) {
    const std::size_t at = next_ / 8;
    const std::size_t shift = next_ % 8;
    next_ += count;
    if (at < safe_) [[likely]]
      return joined(begin_ + at, shift);
    std::byte rest[sizeof(std::uint64_t) + 1] = {};
    if (at < bytes_) std::memcpy(rest, begin_ + at, bytes_ - at);
    return joined(rest, shift);
  }
  // The number of bits before the next one, including those before the first in its byte.
  std::size_t taken() const { return next_; }
  // True if takes of `bits` bits in all may be take_inside.
  bool holds(std::size_t bits) const { return (next_ + bits) / 8 < safe_; }
  // As take(), if the bytes are known to be there and the count is rarely above 57; bits beyond it may be anything.
  std::uint64_t take_inside(std::size_t count) {
    constexpr std::size_t kOneLoad = 57;  // bits that a loaded word holds, whatever bit they start at
    const std::byte* const at = begin_ + next_ / 8;
    const std::size_t shift = next_ % 8;
    next_ += count;
    if (count <= kOneLoad) [[likely]]
      return load_word(at) >> shift;
    return joined(at, shift);
  }

 private:
  static std::uint64_t joined(const std::byte* at, std::size_t shift) {
    return load_word(at) >> shift | (static_cast<std::uint64_t>(at[8]) << 1) << (63 - shift);
  }

  const std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t safe_ = 0;  // 9 bytes may be read at any byte before this one
  std::size_t next_ = 0;  // number of the next bit
};

// True if `bytes` bytes at `at` start with a plane of `bits` bits whose last byte is padded with zeros.
inline bool holds_plane(const std::byte* at, std::size_t bytes, std::size_t bits) {
  if (bytes < (bits + 7) / 8) return false;
  return bits % 8 == 0 || static_cast<unsigned>(at[bits / 8]) >> bits % 8 == 0;
}

}  // namespace
}  // namespace tg::kernels

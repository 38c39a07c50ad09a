// Up to 64 bits at a time into a stream of bits and back, for the bodies that both x86 variants share. Internal
// linkage: every instruction set compiles its own copy.
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

// Stores whole words: once k words' worth of bits may have been put, k words of memory must be there.
class BitWriter {
 public:
  explicit BitWriter(std::byte* at) : at_(at) {}

  // `count` bits, the rest of `bits` being zero.
  void put(std::uint64_t bits, std::size_t count) {
    pending_ |= bits << filled_;
    store_word(at_, pending_);
    const std::size_t filled = filled_ + count;
    if (filled >= 64) {
      at_ += sizeof(std::uint64_t);
      pending_ = filled_ == 0 ? 0 : bits >> (64 - filled_);
    }
    filled_ = filled % 64;
  }
  // The byte after the stream, once the bits that the last put carried over are stored too.
  std::byte* finish() {
    if (filled_ > 0) store_word(at_, pending_);
    return at_ + (filled_ + 7) / 8;
  }

 private:
  std::byte* at_;
  std::uint64_t pending_ = 0;
  std::size_t filled_ = 0;  // bits of pending_
};

// Reads nothing from `end` on; bits from there on are zero.
class BitReader {
 public:
  BitReader(const std::byte* at, const std::byte* end) : at_(at), end_(end) {}

  // The next 64 bits, of which `count` are taken; the others are anything.
  std::uint64_t take(std::size_t count) {
    const std::byte* const at = at_ + read_ / 8;
    const std::size_t shift = read_ % 8;
    read_ += count;
    if (static_cast<std::size_t>(end_ - at) > sizeof(std::uint64_t)) [[likely]]
      return joined(at, shift);
    std::byte rest[sizeof(std::uint64_t) + 1] = {};
    if (at < end_) std::memcpy(rest, at, static_cast<std::size_t>(end_ - at));
    return joined(rest, shift);
  }

 private:
  static std::uint64_t joined(const std::byte* at, std::size_t shift) {
    return load_word(at) >> shift | (static_cast<std::uint64_t>(at[8]) << 1) << (63 - shift);
  }

  const std::byte* at_;
  const std::byte* end_;
  std::size_t read_ = 0;  // bits
};

// True if `bytes` bytes at `at` start with a plane of `bits` bits whose last byte is padded with zeros.
inline bool holds_plane(const std::byte* at, std::size_t bytes, std::size_t bits) {
  if (bytes < (bits + 7) / 8) return false;
  return bits % 8 == 0 || static_cast<unsigned>(at[bits / 8]) >> bits % 8 == 0;
}

}  // namespace
}  // namespace tg::kernels

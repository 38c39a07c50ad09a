// Writes bits in order into bytes and reads them back; bit b of a stream is bit b%8 of byte b/8. Reader and writer
// check no bounds: their users have counted the bits before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tg::kernels::scalar {

class BitWriter {
 public:
  explicit BitWriter(std::byte* at) : at_(at) {}

  void put(bool bit) {
    if (filled_ % 8 == 0) at_[filled_ / 8] = std::byte{0};
    at_[filled_ / 8] |= static_cast<std::byte>(static_cast<unsigned>(bit) << filled_ % 8);
    ++filled_;
  }
  std::size_t bytes() const { return (filled_ + 7) / 8; }

 private:
  std::byte* at_;
  std::size_t filled_ = 0;  // bits
};

class BitReader {
 public:
  explicit BitReader(const std::byte* at) : at_(at) {}

  bool next() {
    const bool bit = (static_cast<unsigned>(at_[read_ / 8]) >> read_ % 8 & 1U) != 0;
    ++read_;
    return bit;
  }

 private:
  const std::byte* at_;
  std::size_t read_ = 0;  // bits
};

// True if `bytes` starts with a plane of `bits` bits whose last byte is padded with zeros.
inline bool holds_plane(std::span<const std::byte> bytes, std::size_t bits) {
  if (bytes.size() < (bits + 7) / 8) return false;
  return bits % 8 == 0 || static_cast<unsigned>(bytes[bits / 8]) >> bits % 8 == 0;
}

}  // namespace tg::kernels::scalar

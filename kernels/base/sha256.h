// SHA-256 (FIPS 180-4), so that files written by tgd can also be checked with `sha256sum`. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tg {

class Sha256 {
 public:
  // plain: do not use the processor's SHA instructions even if it has them.
  explicit Sha256(bool plain = false) : plain_(plain) {}
  void add(std::span<const std::byte> bytes);
  // The hash of everything added, as 64 hexadecimal digits; nothing may be added afterwards.
  std::string hex();

 private:
  static constexpr std::size_t kBlockBytes = 64;
  void take_block(const std::byte* block);

  bool plain_;
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> open_{};  // the block that is not full
  std::size_t open_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

inline constexpr std::size_t kSha256HexDigits = 64;

}  // namespace tg

// SHA-256 (FIPS 180-4), so that files written by tgd can also be checked with `sha256sum`. One thread at a time.
//
// Own code, because the ground floor knows no library, and engine and ctl meet nowhere else. Measured on a core of an
// AMD EPYC, buffers of 64 KB and 1 MB: 1,330 MB/s with the processor's SHA instructions, 310 MB/s without; libsodium's
// crypto_hash_sha256 takes 450 to 480 MB/s, it has no such instructions. Of AlexNet's model (244 MB) that is 0.2 s, 0.8
// s and 0.5 s; a saved run hashes a model twice, and so does a fetch. Data sets have a faster hash (engine/data).
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

// Size and hash of a file on the disk.
struct FileMark {
  std::uint64_t bytes = 0;
  std::string sha256;  // hexadecimal
  bool operator==(const FileMark&) const = default;
};

}  // namespace tg

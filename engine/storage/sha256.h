// SHA-256 (FIPS 180-4) by libsodium, so that files written by tgd can also be checked with `sha256sum`. One thread at a
// time.
//
// libsodium 1.0.18 does not use the processor's SHA instructions: AlexNet's model (244 MB) takes it 0.75 s of a Xeon's
// core, where they would take 0.29 s. A saved run hashes a model twice, and so does a fetch. Data sets have a faster
// hash (engine/data).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct crypto_hash_sha256_state;

namespace tg {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  // The hash of everything added, as 64 hexadecimal digits; nothing may be added afterwards.
  std::string hex();

 private:
  std::unique_ptr<crypto_hash_sha256_state> state_;
};

inline constexpr std::size_t kSha256HexDigits = 64;

// Size and hash of a file on the disk.
struct FileMark {
  std::uint64_t bytes = 0;
  std::string sha256;  // hexadecimal
  bool operator==(const FileMark&) const = default;
};

}  // namespace tg

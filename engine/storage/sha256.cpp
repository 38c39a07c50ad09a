#include "engine/storage/sha256.h"

#include <sodium.h>

#include <array>

namespace tg {

Sha256::Sha256() : state_(std::make_unique<crypto_hash_sha256_state>()) { crypto_hash_sha256_init(state_.get()); }

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  crypto_hash_sha256_update(state_.get(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string Sha256::hex() {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256_final(state_.get(), hash.data());
  std::array<char, kSha256HexDigits + 1> text;
  return sodium_bin2hex(text.data(), text.size(), hash.data(), hash.size());
}

}  // namespace tg

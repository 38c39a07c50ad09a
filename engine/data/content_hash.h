// A 64-bit hash of byte strings, to check whether two nodes hold the same data: h = mix(h * odd + word) over
// little-endian 8-byte words, mix being the finalizer of splitmix64. No protection against deliberate collisions.
// One object per thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tg::engine {

class ContentHash {
 public:
  void add(std::uint64_t word) { state_ = mix(state_ * 0x9e3779b97f4a7c15u + word); }
  // The length is part of the content, so that two strings in a row hash unlike their concatenation.
  void add(std::span<const std::uint8_t> bytes) {
    add(bytes.size());
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) add(load(bytes.data() + i, 8));
    if (i < bytes.size()) add(load(bytes.data() + i, bytes.size() - i));
  }
  void add(std::string_view text) { add(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size())); }
  std::uint64_t value() const { return state_; }
  // The hash of bytes or a text alone.
  static std::uint64_t of(const auto& content) {
    ContentHash hash;
    hash.add(content);
    return hash.value();
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  static std::uint64_t load(const std::uint8_t* bytes, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    return word;
  }

  std::uint64_t state_ = 0x74676420u;
};

}  // namespace tg::engine

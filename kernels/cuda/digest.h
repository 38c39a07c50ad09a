// The digest (host_kernels.h): sums modulo 2^64, which may be added in any order. The blocks take turns at tiles of two
// times four elements a thread; a block adds up its threads' sums, and the host adds the blocks' sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/vector.h"

namespace tg::kernels::cuda {

inline constexpr std::size_t kDigestHalf = kThreads * kVector;  // elements
inline constexpr std::size_t kDigestTile = 2 * kDigestHalf;
inline constexpr unsigned kDigestBlocks = 1024;  // the upper bound: what an H100 runs at a time

struct DigestArguments {
  const float* values;
  std::size_t elements;
  std::uint64_t first, salt;
};

inline unsigned digest_blocks(std::size_t elements) {
  const std::size_t tiles = (elements + kDigestTile - 1) / kDigestTile;
  return tiles < kDigestBlocks ? static_cast<unsigned>(tiles) : kDigestBlocks;
}

TG_HOST_DEVICE inline std::uint64_t digest_four(const DigestArguments& a, std::size_t i, const Floats4& values) {
  std::uint64_t total = 0;
  TG_UNROLL
  for (int e = 0; e < 4; ++e) {
    const std::uint64_t t = (a.first + i + e) ^ a.salt;
    const std::uint64_t u = std::uint64_t{static_cast<std::uint32_t>(t)} * kDigest1 + (t >> 32);
    const std::uint64_t v = std::uint64_t{static_cast<std::uint32_t>(u ^ u >> 32)} * kDigest2 + u;
    total += (bits_of(values.at[e]) ^ u >> 32) * (v >> 32 | 1);
  }
  return total;
}

// The sum of one thread of a block.
TG_HOST_DEVICE inline std::uint64_t digest_thread(const DigestArguments& a, std::size_t block, std::size_t blocks,
                                                  unsigned thread) {
  std::uint64_t total = 0;
  for (std::size_t i = block * kDigestTile + thread * kVector; i < a.elements; i += blocks * kDigestTile) {
    const bool both = i + kDigestHalf < a.elements;
    const Floats4 near = load(a.values + i);
    const Floats4 far = load(a.values + (both ? i + kDigestHalf : i));
    total += digest_four(a, i, near);
    if (both) total += digest_four(a, i + kDigestHalf, far);
  }
  return total;
}

}  // namespace tg::kernels::cuda

#include <cstdlib>
#include <cstring>

#include "kernels/require.h"
#include "kernels/scalar/bit_stream.h"
#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {

std::size_t encode_sums(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload) {
  require_capacity(payload.size(), sums_bound(sums.size(), members));
  std::byte* at = payload.data();
  BitWriter mask(at);
  for (const std::int8_t sum : sums) mask.put(sum != 0);
  at += mask.bytes();
  BitWriter signs(at);
  for (const std::int8_t sum : sums) {
    if (sum != 0) signs.put(sum < 0);
  }
  at += signs.bytes();
  for (int level = 1; level < members; ++level) {
    BitWriter plane(at);
    for (const std::int8_t sum : sums) {
      if (std::abs(sum) >= level) plane.put(std::abs(sum) > level);
    }
    if (plane.bytes() == 0) break;
    at += plane.bytes();
  }
  return static_cast<std::size_t>(at - payload.data());
}

// The sums serve as scratch: until the signs are put on at the end, they hold the magnitudes known so far, and a
// level's plane has one bit for each magnitude that equals the level.
bool decode_sums(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums) {
  require_members(members);
  const std::size_t mask_bytes = sums.size() / 8;
  if (payload.size() < mask_bytes) return false;
  BitReader mask(payload.data());
  std::size_t reached = 0;  // elements with |sum| >= level
  for (std::int8_t& sum : sums) {
    sum = static_cast<std::int8_t>(mask.next());
    reached += static_cast<std::size_t>(sum);
  }
  std::span<const std::byte> rest = payload.subspan(mask_bytes);
  if (!holds_plane(rest, reached)) return false;
  BitReader signs(rest.data());
  rest = rest.subspan((reached + 7) / 8);
  for (int level = 1; level < members && reached > 0; ++level) {
    if (!holds_plane(rest, reached)) return false;
    BitReader plane(rest.data());
    rest = rest.subspan((reached + 7) / 8);
    reached = 0;
    for (std::int8_t& sum : sums) {
      if (sum != level || !plane.next()) continue;
      ++sum;
      ++reached;
    }
  }
  for (std::int8_t& sum : sums) {
    if (sum != 0 && signs.next()) sum = static_cast<std::int8_t>(-sum);
  }
  return rest.empty();
}

}  // namespace tg::kernels::scalar

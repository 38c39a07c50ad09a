// Sums to unary planes and back with pext and pdep; `Sums` is the instruction set's (vector.h). Internal linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/require.h"
#include "kernels/x86/bit_stream.h"

namespace tg::kernels {
namespace {

// Room: before a plane of c <= elements bits begins, at most that plane's worth of the bound is unused, and the writer
// stays within whole words of it, because elements is a multiple of 64.
template <class Sums>
inline std::size_t encode_sums_x86(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload) {
  require_capacity(payload.size(), sums_bound(sums.size(), members));
  const std::int8_t* const from = sums.data();
  const std::size_t elements = sums.size();
  if (elements == 0) return 0;
  std::byte* const begin = payload.data();
  BitWriter signs(begin + elements / 8);
  std::size_t reached = 0;  // elements with |sum| >= level
  for (std::size_t i = 0; i < elements; i += kWordBits) {
    const std::uint64_t nonzero = Sums::nonzero(from + i);
    store_word(begin + i / 8, nonzero);
    signs.put(_pext_u64(Sums::negative(from + i), nonzero), bits_in(nonzero));
    reached += bits_in(nonzero);
  }
  std::byte* at = signs.finish();
  for (int level = 1; level < members && reached > 0; ++level) {
    BitWriter plane(at);
    reached = 0;
    for (std::size_t i = 0; i < elements; i += kWordBits) {
      const std::uint64_t here = Sums::above(from + i, level - 1);
      if (here == 0) continue;
      const std::uint64_t above = Sums::above(from + i, level);
      plane.put(_pext_u64(above, here), bits_in(here));
      reached += bits_in(above);
    }
    at = plane.finish();
  }
  return static_cast<std::size_t>(at - begin);
}

// The sums serve as scratch: until the signs are put on at the end, they hold the magnitudes known so far, and those
// that equal the level are the ones that its plane speaks of.
template <class Sums>
inline bool decode_sums_x86(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums) {
  require_members(members);
  const std::size_t elements = sums.size();
  const std::byte* at = payload.data();
  const std::byte* const end = at + payload.size();
  if (payload.size() < elements / 8) return false;
  std::int8_t* const to = sums.data();
  std::size_t reached = 0;  // elements with |sum| >= level
  for (std::size_t i = 0; i < elements; i += kWordBits) {
    const std::uint64_t nonzero = load_word(at + i / 8);
    Sums::set(to + i, nonzero);
    reached += bits_in(nonzero);
  }
  at += elements / 8;
  if (!holds_plane(at, static_cast<std::size_t>(end - at), reached)) return false;
  BitReader signs(at, end);
  at += (reached + 7) / 8;
  for (int level = 1; level < members && reached > 0; ++level) {
    if (!holds_plane(at, static_cast<std::size_t>(end - at), reached)) return false;
    BitReader plane(at, end);
    at += (reached + 7) / 8;
    reached = 0;
    for (std::size_t i = 0; i < elements; i += kWordBits) {
      const std::uint64_t here = Sums::equal(to + i, level);
      if (here == 0) continue;
      const std::uint64_t above = _pdep_u64(plane.take(bits_in(here)), here);
      Sums::add(to + i, above, 0);
      reached += bits_in(above);
    }
  }
  for (std::size_t i = 0; i < elements; i += kWordBits) {
    const std::uint64_t nonzero = Sums::nonzero(to + i);
    Sums::negate(to + i, _pdep_u64(signs.take(bits_in(nonzero)), nonzero));
  }
  return at == end;
}

}  // namespace
}  // namespace tg::kernels

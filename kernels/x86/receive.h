// Sums the codes of all members and applies the update, a tile of elements at a time; `Floats` and `Sums` are the
// instruction set's (vector.h). Internal linkage.
#pragma once

#include <algorithm>

#include "kernels/x86/apply.h"
#include "kernels/x86/codes.h"
#include "kernels/x86/read_ahead.h"

namespace tg::kernels {
namespace {

// So few elements that the processor starts on the next tile while it still adds up the sums of one.
inline constexpr std::size_t kTileWords = 4;
inline constexpr std::size_t kTile = kTileWords * kWordBits;  // elements
static_assert(kBlock % kTile == 0, "no tail");
// Memory is fetched this many tiles ahead, so that the additions do not wait for it.
inline constexpr std::size_t kTilesAhead = 20;

// A payload's masks, and the position in its signs after the last tile.
struct CodesCursor {
  const std::byte* mask;
  BitReader signs;
};

// Adds the tile's codes to the sums.
template <class Sums>
inline void add_tile(CodesCursor& cursor, std::size_t first, std::int8_t* sums) {
  BitReader signs = cursor.signs;
  const std::byte* const mask = cursor.mask + first / 8;
  const bool inside = signs.holds(kTile);
  for (std::size_t w = 0; w < kTileWords; ++w) {
    const std::uint64_t nonzero = load_word(mask + w * sizeof nonzero);
    const std::size_t count = bits_in(nonzero);
    const std::uint64_t bits = inside ? signs.take_inside(count) : signs.take(count);
    const std::uint64_t negative = _pdep_u64(bits, nonzero);
    Sums::add_codes(sums + w * kWordBits, nonzero, negative);
  }
  cursor.signs = signs;
}

// Prefetches the state of a later tile, a part of it with every member's codes: all at once, the requests would queue
// before the loads. Going less far ahead gains nothing: the second level cache has room for many tiles.
class StateAhead {
 public:
  StateAhead(const Update& update, const ConstStateSpan& from, std::size_t members)
      : arrays_{from.parameters.data(), from.slot0.data(), from.slot1.data()},
        lines_each_(members > 0 ? (kLines + members - 1) / members : 0),
        on_(update.past_caches) {}
  void begin_tile(std::size_t first) {
    first_ = first + kTilesAhead * kTile;
    line_ = on_ ? 0 : kLines;
  }
  void fetch_some() {
    for (const std::size_t end = std::min(line_ + lines_each_, kLines); line_ < end; ++line_)
      for (const float* const array : arrays_)
        if (array != nullptr) fetch_ahead(array, first_ + line_ * kLineFloats);
  }

 private:
  static constexpr std::size_t kLines = kTile / kLineFloats;
  const float* arrays_[3];
  std::size_t lines_each_;
  bool on_;
  std::size_t first_ = 0, line_ = 0;
};

template <class Floats, class Sums>
inline bool apply_codes_x86(const Update& u, const Received& received, ConstStateSpan from, StateSpan to) {
  const std::size_t elements = from.parameters.size();
  require_state(u.kind, elements, from, to);
  require_received(received, elements);
  const std::size_t payloads = received.payloads.size(), planes = received.planes.size();
  CodesCursor cursors[kMaxMembers];
  for (std::size_t p = 0; p < payloads; ++p) {
    const std::span<const std::byte>& payload = received.payloads.data()[p];
    if (payload.size() < elements / 8) return false;
    cursors[p] = {payload.data(), BitReader(payload.data(), payload.size(), elements / 8)};
  }
  StateAhead ahead(u, from, payloads + planes);
  alignas(64) std::int8_t sums[kTile];
  for (std::size_t first = 0; first < elements; first += kTile) {
    std::memset(sums, 0, sizeof sums);
    ahead.begin_tile(first);
    for (std::size_t p = 0; p < payloads; ++p) {
      ahead.fetch_some();
      add_tile<Sums>(cursors[p], first, sums);
    }
    for (std::size_t p = 0; p < planes; ++p) {
      ahead.fetch_some();
      const std::uint64_t* const nonzero = received.planes.data()[p].nonzero.data() + first / kWordBits;
      const std::uint64_t* const negative = received.planes.data()[p].negative.data() + first / kWordBits;
      if (u.past_caches) {  // so that nothing waits for planes that have left the cache since they were decoded
        fetch_ahead(nonzero, kTilesAhead * kTileWords);
        fetch_ahead(negative, kTilesAhead * kTileWords);
      }
      for (std::size_t w = 0; w < kTileWords; ++w) {
        Sums::add_codes(sums + w * kWordBits, nonzero[w], negative[w]);
      }
    }
    apply_part<Floats>(u, sums, first, kTile, from, to);
  }
  if (u.past_caches) _mm_sfence();
  // The number of codes added is the number of signs there must be: no payload needs to be counted in advance.
  bool good = true;
  for (std::size_t p = 0; p < payloads; ++p) {
    const std::span<const std::byte>& payload = received.payloads.data()[p];
    const std::size_t ones = cursors[p].signs.taken() - elements;
    const std::size_t sign_bytes = payload.size() - elements / 8;
    good = good && sign_bytes == (ones + 7) / 8 && holds_plane(payload.data() + elements / 8, sign_bytes, ones);
  }
  return good;
}

}  // namespace
}  // namespace tg::kernels

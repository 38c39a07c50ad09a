// Codes from all members into the update, a tile of elements at a time; `Floats` and `Sums` are the instruction set's
// (vector.h). Internal linkage.
#pragma once

#include "kernels/x86/apply.h"
#include "kernels/x86/codes.h"

namespace tg::kernels {
namespace {

// A tile's sums stay in the first level cache, and so do, in the second at worst, the parameters and slots of the next
// one: 2 Ki elements are 2 KiB of sums and 24 KiB of the state of Adam. While the codes of a tile are being added,
// which is arithmetic, the state of the next tile is fetched, which is waiting: neither then waits for the other.
inline constexpr std::size_t kTileWords = 32;
inline constexpr std::size_t kTile = kTileWords * kWordBits;  // elements

// Fetches the state of a tile evenly over `steps` calls.
class Ahead {
 public:
  Ahead(OptimizerKind kind, const ConstStateSpan& from, std::size_t first, std::size_t steps) : steps_(steps) {
    if (first >= from.parameters.size()) return;
    const std::size_t left = (from.parameters.size() - first) * sizeof(float);
    bytes_ = left < kTile * sizeof(float) ? left : kTile * sizeof(float);
    add(from.parameters.data() + first);
    if (kind != OptimizerKind::kSgd) add(from.slot0.data() + first);
    if (kind == OptimizerKind::kAdam) add(from.slot1.data() + first);
  }
  void step() {
    for (budget_ += bytes_; budget_ >= kLine * steps_ && next_ < bytes_; next_ += kLine) {
      budget_ -= kLine * steps_;
      for (std::size_t s = 0; s < count_; ++s) _mm_prefetch(streams_[s] + next_, _MM_HINT_T0);
    }
  }

 private:
  static constexpr std::size_t kLine = 64;
  void add(const float* at) { streams_[count_++] = reinterpret_cast<const char*>(at); }

  const char* streams_[3] = {};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;  // of each stream
  std::size_t next_ = 0;
  std::size_t steps_;
  std::size_t budget_ = 0;
};

inline bool hold_codes(const Received& received, std::size_t words) {
  bool good = true;
  for (std::size_t p = 0; p < received.payloads.size(); ++p) {
    const std::span<const std::byte>& payload = received.payloads.data()[p];
    good = good && holds_codes(payload.data(), payload.size(), words);
  }
  return good;
}

template <class Floats, class Sums>
inline bool apply_codes_x86(const Update& u, const Received& received, const ConstStateSpan& from,
                            const StateSpan& to) {
  const std::size_t elements = from.parameters.size();
  require_state(u.kind, elements, from, to);
  require_received(received, elements);
  if (!hold_codes(received, elements / kWordBits)) return false;
  const std::size_t payloads = received.payloads.size(), planes = received.planes.size();
  BitReader signs[kMostMembers];
  for (std::size_t p = 0; p < payloads; ++p) {
    const std::span<const std::byte>& payload = received.payloads.data()[p];
    signs[p] = BitReader(payload.data(), payload.size(), elements / 8);
  }
  alignas(64) std::int8_t sums[kTile];
  for (std::size_t first = 0; first < elements; first += kTile) {
    const std::size_t words = (elements - first < kTile ? elements - first : kTile) / kWordBits;
    Ahead ahead(u.kind, from, first + kTile, (payloads + planes) * words);
    std::memset(sums, 0, words * kWordBits);
    for (std::size_t p = 0; p < payloads; ++p) {
      const std::byte* const mask = received.payloads.data()[p].data() + first / 8;
      BitReader reader = signs[p];
      for (std::size_t w = 0; w < words; ++w) {
        const std::uint64_t nonzero = load_word(mask + w * sizeof nonzero);
        const std::uint64_t negative = _pdep_u64(reader.take(bits_in(nonzero)), nonzero);
        Sums::add(sums + w * kWordBits, nonzero & ~negative, negative);
        ahead.step();
      }
      signs[p] = reader;
    }
    for (std::size_t p = 0; p < planes; ++p) {
      const std::uint64_t* const nonzero = received.planes.data()[p].nonzero.data() + first / kWordBits;
      const std::uint64_t* const negative = received.planes.data()[p].negative.data() + first / kWordBits;
      for (std::size_t w = 0; w < words; ++w) {
        Sums::add(sums + w * kWordBits, nonzero[w] & ~negative[w], nonzero[w] & negative[w]);
        ahead.step();
      }
    }
    apply_part<Floats>(u, sums, first, words * kWordBits, from, to);
  }
  if (u.past_caches) _mm_sfence();
  return true;
}

}  // namespace
}  // namespace tg::kernels

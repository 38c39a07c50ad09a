// Turns raw payloads into entropy-coded ones and back, a word of a plane at a time. `States` (states.h: the states of
// 64 lanes) and `Sums` (vector.h) are the instruction set's. Same order as scalar/rans.cpp. Internal linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/rans.h"
#include "kernels/require.h"
#include "kernels/scratch.h"
#include "kernels/x86/bit_stream.h"
#include "kernels/x86/codes.h"
#include "kernels/x86/functions.h"
#include "kernels/x86/sums.h"

namespace tg::kernels {
namespace {

inline constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
inline constexpr std::size_t kMaxStepWords = kMaxRansLanes / kWordBits;
inline constexpr std::size_t kCheckedWords = kBlock / kWordBits;  // words coded between two checks of the room left
static_assert(kPayloadSlack >= kBlock, "a look lets a block's bytes be written");
static_assert(kMinRansLanes == kWordBits && kMaxRansLanes % kWordBits == 0, "lanes are whole words of a plane");
static_assert(kCheckedWords % kMaxStepWords == 0, "between two looks steps are whole");

// The probability's two symbols as the word operations want them: a set bit is the rarer symbol.
struct Symbols {
  explicit Symbols(unsigned probability)
      : rare(probability & kRansRareMask), flip((probability & kRansZerosAreRare) != 0 ? ~std::uint64_t{0} : 0) {}
  unsigned rare;
  std::uint64_t flip;
};

inline std::size_t in_whole_steps(std::size_t bits, std::size_t lanes) { return (bits + lanes - 1) / lanes * lanes; }

// Codes whole steps of kStepWords words. Returns the byte after the last one written, which is `limit` or more once the
// room is used up.
template <class States, std::size_t kStepWords>
inline std::byte* put_words(States* all_states, const std::byte* plane, std::size_t words, const Symbols& symbols,
                            std::byte* at, const std::byte* limit) {
  const typename States::Encoding encoding(symbols.rare);
  States states[kStepWords];
  for (std::size_t s = 0; s < kStepWords; ++s) states[s] = all_states[s];
  for (std::size_t block = 0; block < words && at < limit; block += kCheckedWords) {
    const std::size_t end = words - block < kCheckedWords ? words : block + kCheckedWords;
    for (std::size_t w = block; w < end; w += kStepWords) {
      for (std::size_t s = 0; s < kStepWords; ++s) {
        at += states[s].put(load_word(plane + (w + s) * kWordBytes) ^ symbols.flip, encoding, at);
      }
    }
  }
  for (std::size_t s = 0; s < kStepWords; ++s) all_states[s] = states[s];
  return at;
}

template <class States, std::size_t kStepWords>
inline std::byte* put_plane(States* states, const std::byte* plane, std::size_t bits, unsigned probability,
                            std::byte* at, const std::byte* limit) {
  const Symbols symbols(probability);
  if (symbols.rare == 0) return at;
  const std::size_t words = bits / kWordBits / kStepWords * kStepWords;
  at = put_words<States, kStepWords>(states, plane, words, symbols, at, limit);
  const std::size_t rest = bits - words * kWordBits;
  if (rest == 0 || at >= limit) return at;
  std::byte step[kStepWords * kWordBytes] = {};
  std::memcpy(step, plane + words * kWordBytes, (rest + 7) / 8);
  return put_words<States, kStepWords>(states, step, kStepWords, symbols, at, limit);
}

// The part of a payload not yet read, bytes [floor, position). Bytes are taken from the end.
struct Stream {
  const std::byte* payload;
  std::size_t bytes;
  std::size_t floor;
  std::size_t position;

  bool empty() const { return position <= floor; }
};

// The opposite of put_words, last word first. Returns false if the stream has too few bytes; adds to `ones`.
template <class States, std::size_t kStepWords>
inline bool take_words(States* all_states, Stream& stream, const Symbols& symbols, std::size_t words, std::byte* plane,
                       std::size_t& ones) {
  const typename States::Decoding decoding(symbols.rare);
  const std::byte* const payload = stream.payload;
  const std::size_t floor = stream.floor;
  // The start of 64 readable bytes, if the stream has as many left as are wanted.
  const std::size_t window = stream.bytes >= floor + kWordBits ? stream.bytes - kWordBits - floor : 0;
  std::size_t position = stream.position;
  std::size_t set = 0;
  States states[kStepWords];
  for (std::size_t s = 0; s < kStepWords; ++s) states[s] = all_states[s];
  for (std::size_t w = words; w > 0; w -= kStepWords) {
    for (std::size_t s = 0; s < kStepWords; ++s) {
      const std::uint64_t word = states[s].take(decoding) ^ symbols.flip;
      set += bits_in(word);
      store_word(plane + (w - kStepWords + s) * kWordBytes, word);
    }
    for (std::size_t s = kStepWords; s-- > 0;) {
      const std::uint64_t missing = states[s].missing();
      const std::size_t count = bits_in(missing);
      const std::size_t next = position - floor - count;  // huge if there are too few
      if (next < window) [[likely]] {
        states[s].refill(payload + floor + next, missing);
      } else {
        if (count > position - floor) return false;
        std::byte last[kWordBits] = {};
        std::memcpy(last, payload + floor + next, count);
        states[s].refill(last, missing);
      }
      position -= count;
    }
  }
  for (std::size_t s = 0; s < kStepWords; ++s) all_states[s] = states[s];
  stream.position = position;
  ones += set;
  return true;
}

// Reads a plane coded with the given probability. Returns false if the stream has too few bytes, if a bit of the
// padding is set, or if the plane's bits call for another probability. Sets `ones`.
template <class States, std::size_t kStepWords>
inline bool take_plane(States* states, Stream& stream, unsigned probability, std::size_t bits, std::byte* plane,
                       std::size_t& ones) {
  ones = 0;
  if (bits == 0) return probability == 0;
  const Symbols symbols(probability);
  const std::size_t coded_bits = in_whole_steps(bits, kStepWords * kWordBits);
  const std::size_t words = bits / kWordBits / kStepWords * kStepWords;
  const std::size_t rest = bits - words * kWordBits;
  if (symbols.rare == 0) {
    if (symbols.flip != 0 && rest != 0) return false;  // the padding would be ones
    ones = symbols.flip != 0 ? bits : 0;
    std::memset(plane, symbols.flip != 0 ? 0xFF : 0, (bits + 7) / 8);
    return true;
  }
  if (rest != 0) {
    std::byte step[(kStepWords + 1) * kWordBytes] = {};
    if (!take_words<States, kStepWords>(states, stream, symbols, kStepWords, step, ones)) return false;
    std::uint64_t padding = load_word(step + rest / kWordBits * kWordBytes) >> rest % kWordBits;
    for (std::size_t w = rest / kWordBits + 1; w < kStepWords; ++w) padding |= load_word(step + w * kWordBytes);
    if (padding != 0) return false;
    std::memcpy(plane + words * kWordBytes, step, (rest + 7) / 8);
  }
  return take_words<States, kStepWords>(states, stream, symbols, words, plane, ones) &&
         probability == rans_probability(ones, coded_bits);
}

// One of a raw payload's planes after the mask.
struct Level {
  const std::byte* plane;
  std::size_t bits, ones;
};

// Returns how many level planes there are.
inline std::size_t find_levels(const std::byte* at, const std::byte* end, std::size_t reached, Level* levels) {
  std::size_t count = 0;
  for (; at != end; ++count) {
    const std::size_t bytes = (reached + 7) / 8;
    levels[count] = {at, reached, ones_in(at, bytes)};
    reached = levels[count].ones;
    at += bytes;
  }
  return count;
}

template <class States, std::size_t kStepWords>
inline std::size_t compress(std::span<const std::byte> raw, std::size_t elements, std::span<const std::size_t> runs,
                            std::byte* payload) {
  constexpr std::size_t kLanes = kStepWords * kWordBits;
  const std::size_t ones = ones_in(raw.data(), elements / 8);
  const std::byte* const signs = raw.data() + elements / 8;
  const std::size_t sign_bytes = (ones + 7) / 8;
  Level levels[kMaxMembers];
  const std::size_t level_count = find_levels(signs + sign_bytes, raw.data() + raw.size(), ones, levels);
  const std::size_t carried = sign_bytes < kLanes ? sign_bytes : kLanes;  // signs that the states carry
  std::byte* const probabilities = payload + 2 * kLanes;
  const std::size_t begin = 2 * kLanes + runs.size() + level_count + sign_bytes - carried;
  if (begin >= raw.size()) return 0;
  std::byte low[kLanes] = {}, high[kLanes];
  if (carried > 0) std::memcpy(low, signs, carried);
  std::memset(high, 1, kLanes);
  States states[kStepWords];
  for (std::size_t s = 0; s < kStepWords; ++s) states[s] = States::load(low + s * kWordBits, high + s * kWordBits);
  if (sign_bytes > carried)
    std::memcpy(payload + begin - (sign_bytes - carried), signs + carried, sign_bytes - carried);
  const std::byte* const limit = payload + raw.size();
  std::byte* at = payload + begin;
  for (std::size_t l = level_count; l-- > 0;) {
    const auto [plane, bits, set] = levels[l];
    const std::uint8_t probability = rans_probability(set, in_whole_steps(bits, kLanes));
    probabilities[runs.size() + l] = static_cast<std::byte>(probability);
    at = put_plane<States, kStepWords>(states, plane, bits, probability, at, limit);
    if (at >= limit) return 0;
  }
  const std::byte* plane = raw.data();
  for (std::size_t r = 0; r < runs.size(); plane += runs.data()[r++] / 8) {
    const std::size_t bits = runs.data()[r];
    const std::uint8_t probability = bits == 0 ? std::uint8_t{0} : rans_probability(ones_in(plane, bits / 8), bits);
    probabilities[r] = static_cast<std::byte>(probability);
    at = put_plane<States, kStepWords>(states, plane, bits, probability, at, limit);
    if (at >= limit) return 0;
  }
  for (std::size_t s = 0; s < kStepWords; ++s)
    states[s].store(payload + kLanes + s * kWordBits, payload + s * kWordBits);
  return static_cast<std::size_t>(at - payload);
}

// The final states' bytes are the first signs. False if a state is not one that a coder starts from.
template <class States, std::size_t kStepWords>
inline bool take_carried_signs(const States* states, std::byte* signs, std::size_t sign_bytes) {
  constexpr std::size_t kLanes = kStepWords * kWordBits;
  std::byte low[kLanes], high[kLanes];
  for (std::size_t s = 0; s < kStepWords; ++s) states[s].store(low + s * kWordBits, high + s * kWordBits);
  unsigned wrong = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    wrong |= static_cast<unsigned>(high[lane]) ^ 1U;
    if (lane >= sign_bytes) wrong |= static_cast<unsigned>(low[lane]);
  }
  if (wrong != 0) return false;
  std::memcpy(signs, low, sign_bytes < kLanes ? sign_bytes : kLanes);
  return true;
}

// Returns the length of the raw payload, or 0 for a payload that breaks the format.
template <class States, std::size_t kStepWords>
inline std::size_t expand(std::span<const std::byte> payload, int members, std::size_t elements,
                          std::span<const std::size_t> runs, std::byte* raw) {
  constexpr std::size_t kLanes = kStepWords * kWordBits;
  if (payload.size() < 2 * kLanes + runs.size()) return 0;
  const std::byte* const at = payload.data();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (at[lane] == std::byte{0}) return 0;
  }
  States states[kStepWords];
  for (std::size_t s = 0; s < kStepWords; ++s)
    states[s] = States::load(at + kLanes + s * kWordBits, at + s * kWordBits);
  Stream stream{at, payload.size(), 2 * kLanes + runs.size(), payload.size()};
  std::size_t first = elements;
  std::size_t reached = 0;
  for (std::size_t r = runs.size(); r-- > 0;) {
    const std::size_t bits = runs.data()[r];
    std::size_t ones = 0;
    first -= bits;
    const unsigned probability = static_cast<unsigned>(at[2 * kLanes + r]);
    if (!take_plane<States, kStepWords>(states, stream, probability, bits, raw + first / 8, ones)) return 0;
    reached += ones;
  }
  const std::size_t sign_bytes = (reached + 7) / 8;
  std::byte* const signs = raw + elements / 8;
  std::size_t raw_bytes = elements / 8 + sign_bytes;
  for (int level = 1; level < members && reached > 0; ++level) {
    if (stream.empty()) return 0;
    const unsigned probability = static_cast<unsigned>(at[stream.floor++]);
    const std::size_t bits = reached;
    if (!take_plane<States, kStepWords>(states, stream, probability, bits, raw + raw_bytes, reached)) return 0;
    raw_bytes += (bits + 7) / 8;
  }
  const std::size_t late = sign_bytes < kLanes ? 0 : sign_bytes - kLanes;
  if (stream.position - stream.floor != late || payload.size() >= raw_bytes) return 0;
  if (!take_carried_signs<States, kStepWords>(states, signs, sign_bytes)) return 0;
  if (late > 0) std::memcpy(signs + kLanes, at + stream.floor, late);
  return raw_bytes;
}

template <class States>
inline std::size_t compress_x86(std::span<const std::byte> raw, std::size_t elements, std::span<const std::size_t> runs,
                                std::span<std::byte> payload) {
  if (rans_lanes(elements) == kMaxRansLanes) {
    return compress<States, kMaxStepWords>(raw, elements, runs, payload.data());
  }
  return compress<States, 1>(raw, elements, runs, payload.data());
}

template <class States>
inline std::size_t expand_x86(std::span<const std::byte> payload, int members, std::size_t elements,
                              std::span<const std::size_t> runs, std::byte* raw) {
  if (rans_lanes(elements) == kMaxRansLanes) {
    return expand<States, kMaxStepWords>(payload, members, elements, runs, raw);
  }
  return expand<States, 1>(payload, members, elements, runs, raw);
}

template <class States>
inline std::size_t encode_codes_rans_x86(ConstPlanes codes, std::span<const std::size_t> runs,
                                         std::span<std::byte> payload) {
  const std::size_t elements = codes.nonzero.size() * kWordBits;
  require_runs(runs, elements);
  require_capacity(payload.size(), codes_bound(elements));
  const std::span<std::byte> raw = thread_scratch(codes_bound(elements));
  return compress_x86<States>(raw.first(encode_codes_x86(codes, raw)), elements, runs, payload);
}

template <class States>
inline bool decode_codes_rans_x86(std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes) {
  const std::size_t elements = codes.nonzero.size() * kWordBits;
  require_runs(runs, elements);
  const std::span<std::byte> raw = thread_scratch(codes_bound(elements));
  const std::size_t raw_bytes = expand_x86<States>(payload, 1, elements, runs, raw.data());
  return raw_bytes > 0 && decode_codes_x86(raw.first(raw_bytes), codes);
}

template <class States, class Sums>
inline std::size_t encode_sums_rans_x86(std::span<const std::int8_t> sums, int members,
                                        std::span<const std::size_t> runs, std::span<std::byte> payload) {
  require_runs(runs, sums.size());
  require_capacity(payload.size(), sums_bound(sums.size(), members));
  const std::span<std::byte> raw = thread_scratch(sums_bound(sums.size(), members));
  return compress_x86<States>(raw.first(encode_sums_x86<Sums>(sums, members, raw)), sums.size(), runs, payload);
}

template <class States, class Sums>
inline bool decode_sums_rans_x86(std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                                 std::span<std::int8_t> sums) {
  require_runs(runs, sums.size());
  const std::span<std::byte> raw = thread_scratch(sums_bound(sums.size(), members));
  const std::size_t raw_bytes = expand_x86<States>(payload, members, sums.size(), runs, raw.data());
  return raw_bytes > 0 && decode_sums_x86<Sums>(raw.first(raw_bytes), members, sums);
}

template <class States, class Sums>
constexpr EntropyCoder entropy_coder_x86() {
  return {
      .encode_codes = encode_codes_rans_x86<States>,
      .decode_codes = decode_codes_rans_x86<States>,
      .encode_sums = encode_sums_rans_x86<States, Sums>,
      .decode_sums = decode_sums_rans_x86<States, Sums>,
  };
}

}  // namespace
}  // namespace tg::kernels

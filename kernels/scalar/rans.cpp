#include "kernels/rans.h"

#include <algorithm>
#include <array>

#include "kernels/require.h"
#include "kernels/scalar/bit_stream.h"
#include "kernels/scalar/functions.h"
#include "kernels/scratch.h"

namespace tg::kernels::scalar {
namespace {

bool bit_of(std::span<const std::byte> plane, std::size_t i) {
  return (static_cast<unsigned>(plane[i / 8]) >> i % 8 & 1U) != 0;
}

std::size_t count_ones(std::span<const std::byte> plane, std::size_t bits) {
  std::size_t ones = 0;
  for (std::size_t i = 0; i < bits; ++i) ones += static_cast<std::size_t>(bit_of(plane, i));
  return ones;
}

struct Symbols {
  explicit Symbols(unsigned probability)
      : rare(probability & kRansRareMask), rare_bit((probability & kRansZerosAreRare) == 0) {}
  unsigned rare;  // the rarer symbol's part of 256
  bool rare_bit;
};

struct States {
  std::size_t lanes;
  std::array<std::uint32_t, kMaxRansLanes> of{};
};

std::size_t in_whole_steps(std::size_t bits, std::size_t lanes) { return (bits + lanes - 1) / lanes * lanes; }

// Codes a plane's bits, and zeros up to a whole step. Returns the byte after the last one written, or `limit` once it
// is reached.
std::byte* put_plane(States& states, std::span<const std::byte> plane, std::size_t bits, unsigned probability,
                     std::byte* at, const std::byte* limit) {
  const Symbols symbols(probability);
  if (symbols.rare == 0) return at;
  for (std::size_t i = 0; i < in_whole_steps(bits, states.lanes); ++i) {
    const bool is_rare = (i < bits && bit_of(plane, i)) == symbols.rare_bit;
    const unsigned frequency = is_rare ? symbols.rare : 256 - symbols.rare;
    std::uint32_t& x = states.of[i % states.lanes];
    if (x >= frequency << 8) {
      if (at == limit) return at;
      *at++ = static_cast<std::byte>(x);
      x >>= 8;
    }
    x = (x / frequency << 8) + x % frequency + (is_rare ? 0 : symbols.rare);
  }
  return at;
}

// The opposite of put_plane, last element first: takes bytes from the end of `stream`. False if there are too few, or
// if a bit of the padding is set.
bool take_plane(States& states, std::span<const std::byte>& stream, unsigned probability, std::size_t bits,
                std::span<std::byte> plane) {
  const Symbols symbols(probability);
  std::ranges::fill(plane, std::byte{0});
  for (std::size_t i = symbols.rare == 0 ? bits : in_whole_steps(bits, states.lanes); i-- > 0;) {
    std::uint32_t& x = states.of[i % states.lanes];
    const bool is_rare = symbols.rare != 0 && (x & 0xFF) < symbols.rare;
    if (symbols.rare != 0) {
      const unsigned frequency = is_rare ? symbols.rare : 256 - symbols.rare;
      x = frequency * (x >> 8) + (x & 0xFF) - (is_rare ? 0 : symbols.rare);
      if (x < 256) {
        if (stream.empty()) return false;
        x = x << 8 | static_cast<unsigned>(stream.back());
        stream = stream.first(stream.size() - 1);
      }
    }
    if (is_rare != symbols.rare_bit) continue;
    if (i >= bits) return false;
    plane[i / 8] |= static_cast<std::byte>(1U << i % 8);
  }
  return true;
}

// One of a raw payload's planes after the mask.
struct Level {
  std::span<const std::byte> plane;
  std::size_t bits;
};

std::size_t compress(std::span<const std::byte> raw, std::span<const std::size_t> runs, std::span<std::byte> payload) {
  std::size_t elements = 0;
  for (const std::size_t run : runs) elements += run;
  std::size_t reached = count_ones(raw, elements);
  const std::span<const std::byte> signs = raw.subspan(elements / 8, (reached + 7) / 8);
  std::array<Level, kMaxMembers> levels;
  std::size_t level_count = 0;
  for (auto rest = raw.subspan(elements / 8 + signs.size()); !rest.empty(); ++level_count) {
    levels[level_count] = {rest, reached};
    rest = rest.subspan((reached + 7) / 8);
    reached = count_ones(levels[level_count].plane, reached);
  }
  States states{.lanes = rans_lanes(elements)};
  for (std::size_t lane = 0; lane < states.lanes; ++lane) {
    states.of[lane] = 256 + (lane < signs.size() ? static_cast<std::uint32_t>(signs[lane]) : 0);
  }
  const auto late_signs = signs.subspan(std::min(signs.size(), states.lanes));
  const std::size_t probabilities = 2 * states.lanes;
  const std::size_t begin = probabilities + runs.size() + level_count + late_signs.size();
  if (begin >= raw.size()) return 0;
  std::ranges::copy(late_signs, payload.begin() + static_cast<std::ptrdiff_t>(begin - late_signs.size()));
  const std::byte* const limit = payload.data() + raw.size();
  std::byte* at = payload.data() + begin;
  for (std::size_t l = level_count; l-- > 0;) {
    const auto [plane, bits] = levels[l];
    const unsigned probability = rans_probability(count_ones(plane, bits), in_whole_steps(bits, states.lanes));
    payload[probabilities + runs.size() + l] = static_cast<std::byte>(probability);
    at = put_plane(states, plane, bits, probability, at, limit);
  }
  std::size_t first = 0;
  for (std::size_t r = 0; r < runs.size(); first += runs[r++]) {
    const auto part = raw.subspan(first / 8, runs[r] / 8);
    const unsigned probability = runs[r] == 0 ? 0 : rans_probability(count_ones(part, runs[r]), runs[r]);
    payload[probabilities + r] = static_cast<std::byte>(probability);
    at = put_plane(states, part, runs[r], probability, at, limit);
  }
  for (std::size_t lane = 0; lane < states.lanes; ++lane) {
    payload[lane] = static_cast<std::byte>(states.of[lane] >> 8);
    payload[states.lanes + lane] = static_cast<std::byte>(states.of[lane]);
  }
  return at == limit ? 0 : static_cast<std::size_t>(at - payload.data());
}

// The part of a payload not yet read.
struct Source {
  States states;
  std::span<const std::byte> front;   // starts at the first probability not yet read
  std::span<const std::byte> stream;  // `front` without the bytes taken from the end

  // Reads the plane of probability number `index`. Returns false if its bits call for another probability.
  bool take(std::size_t index, std::size_t bits, std::size_t coded_bits, std::span<std::byte> plane) {
    const auto probability = static_cast<unsigned>(front[index]);
    if (!take_plane(states, stream, probability, bits, plane)) return false;
    return probability == (bits == 0 ? 0U : rans_probability(count_ones(plane, bits), coded_bits));
  }
};

// Returns the length of the raw payload, or 0 for a payload that breaks the format.
std::size_t expand(std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                   std::span<std::byte> raw) {
  std::size_t elements = 0;
  for (const std::size_t run : runs) elements += run;
  const std::size_t lanes = rans_lanes(elements);
  if (payload.size() < 2 * lanes + runs.size()) return 0;
  Source source{{.lanes = lanes}, payload.subspan(2 * lanes), {}};
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    if (payload[lane] == std::byte{0}) return 0;
    source.states.of[lane] = static_cast<unsigned>(payload[lane]) << 8 | static_cast<unsigned>(payload[lanes + lane]);
  }
  source.stream = source.front.subspan(runs.size());
  std::size_t first = elements;
  for (std::size_t r = runs.size(); r-- > 0;) {
    first -= runs[r];
    if (!source.take(r, runs[r], runs[r], raw.subspan(first / 8, runs[r] / 8))) return 0;
  }
  std::size_t reached = count_ones(raw, elements);
  const std::span<std::byte> signs = raw.subspan(elements / 8, (reached + 7) / 8);
  std::size_t raw_bytes = elements / 8 + signs.size();
  std::size_t level_count = 0;
  for (; static_cast<int>(level_count) + 1 < members && reached > 0; ++level_count) {
    if (source.stream.empty()) return 0;
    source.stream = source.stream.subspan(1);
    const auto plane = raw.subspan(raw_bytes, (reached + 7) / 8);
    if (!source.take(runs.size() + level_count, reached, in_whole_steps(reached, lanes), plane)) return 0;
    raw_bytes += plane.size();
    reached = count_ones(plane, reached);
  }
  const std::size_t late = signs.size() - std::min(signs.size(), lanes);
  if (source.stream.size() != late || payload.size() >= raw_bytes) return 0;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::uint32_t x = source.states.of[lane];
    if (x >> 8 != 1 || (lane >= signs.size() && x != 256)) return 0;
    if (lane < signs.size()) signs[lane] = static_cast<std::byte>(x);
  }
  std::ranges::copy(source.stream, signs.end() - static_cast<std::ptrdiff_t>(late));
  return raw_bytes;
}

}  // namespace

std::size_t encode_codes_rans(ConstPlanes codes, std::span<const std::size_t> runs, std::span<std::byte> payload) {
  const std::size_t elements = codes.nonzero.size() * kWordBits;
  require_runs(runs, elements);
  require_capacity(payload.size(), codes_bound(elements));
  const auto raw = thread_scratch(codes_bound(elements));
  return compress(raw.first(encode_codes(codes, raw)), runs, payload);
}

bool decode_codes_rans(std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes) {
  const std::size_t elements = codes.nonzero.size() * kWordBits;
  require_runs(runs, elements);
  const auto raw = thread_scratch(codes_bound(elements));
  const std::size_t raw_bytes = expand(payload, 1, runs, raw);
  return raw_bytes > 0 && decode_codes(raw.first(raw_bytes), codes);
}

std::size_t encode_sums_rans(std::span<const std::int8_t> sums, int members, std::span<const std::size_t> runs,
                             std::span<std::byte> payload) {
  require_runs(runs, sums.size());
  require_capacity(payload.size(), sums_bound(sums.size(), members));
  const auto raw = thread_scratch(sums_bound(sums.size(), members));
  return compress(raw.first(encode_sums(sums, members, raw)), runs, payload);
}

bool decode_sums_rans(std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                      std::span<std::int8_t> sums) {
  require_runs(runs, sums.size());
  const auto raw = thread_scratch(sums_bound(sums.size(), members));
  const std::size_t raw_bytes = expand(payload, members, runs, raw);
  return raw_bytes > 0 && decode_sums(raw.first(raw_bytes), members, sums);
}

}  // namespace tg::kernels::scalar

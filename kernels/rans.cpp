#include "kernels/rans.h"

#include <algorithm>
#include <bit>

namespace tg::kernels {
namespace {

// With 2^shift < f <= 2^(shift+1), 2^(16+shift) / f has 16 bits. Rounded up it is exact if its error, e/f, adds less
// than 1/f to every quotient: x * e < 2^(16+shift). Otherwise the one rounded down is exact with x + 1.
constexpr RansDivision division_by(std::uint32_t f) {
  const std::uint32_t shift = f == 1 ? 0 : static_cast<std::uint32_t>(std::bit_width(f - 1)) - 1;
  const std::uint32_t whole = 1U << (16 + shift);
  const std::uint32_t up = (whole + f - 1) / f;
  if (up <= 0xFFFF && (256 * f - 1) * std::uint64_t{up * f - whole} < whole) {
    return {static_cast<std::uint16_t>(up), 0, static_cast<std::uint16_t>(shift)};
  }
  return {static_cast<std::uint16_t>(std::min(whole / f, 0xFFFFU)), 1, static_cast<std::uint16_t>(shift)};
}

constexpr auto kDivisions = [] {
  std::array<RansDivision, 256> table{};
  for (std::uint32_t f = 1; f < 256; ++f) table[f] = division_by(f);
  return table;
}();

}  // namespace

std::size_t rans_lanes(std::size_t elements) { return elements >= kManyRansLanesFrom ? kMaxRansLanes : kMinRansLanes; }

std::uint8_t rans_probability(std::size_t ones, std::size_t bits) {
  const std::size_t rare = std::min(ones, bits - ones);
  const unsigned which = ones > bits - ones ? kRansZerosAreRare : 0;
  if (rare == 0) return static_cast<std::uint8_t>(which);
  const std::size_t nearest = (512 * rare + bits) / (2 * bits);
  return static_cast<std::uint8_t>(which | std::clamp<std::size_t>(nearest, 1, kRansRareMask));
}

const RansDivision& rans_division(unsigned frequency) { return kDivisions[frequency]; }

}  // namespace tg::kernels

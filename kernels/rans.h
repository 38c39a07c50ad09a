// What every variant of the entropy coder shares: how many lanes there are, how a probability is chosen and written,
// and how to divide by it. The coder itself is in rans.cpp of each variant; codec_kernels.h has the format. In an
// object of the baseline instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tg::kernels {

// A state is 16 bits, from 2^8 to 2^16 - 1, and gives and takes whole bytes; a probability has 8 bits. Then a symbol
// moves at most one byte, and twelve steps of 16-bit arithmetic code 32 elements (AVX-512).
inline constexpr std::size_t kMaxRansLanes = 256;
inline constexpr std::size_t kMinRansLanes = 64;  // one word of a plane
// The states cost a chunk `lanes` bytes (two each, one of which carries signs): 256 bytes of 64 Ki elements at 99 %
// zeros are 3.5 % of 7.3 KB, of 128 Ki 1.7 %. 64 lanes cost a quarter of that and, waiting for each other, are coded at
// half the speed, which does not matter in so small a chunk.
inline constexpr std::size_t kManyRansLanesFrom = 128 * 1024;  // elements of the chunk
static_assert(kMaxRansLanes % kMinRansLanes == 0);
static_assert(kManyRansLanesFrom >= kMaxRansLanes, "every lane has an element");

// The probability byte of a run or plane: bits 0-6 are the probability of its rarer symbol in 256ths, bit 7 is set if
// zero is the rarer one. 0: the rarer symbol does not occur, and nothing is coded.
inline constexpr unsigned kRansRareMask = 0x7F;
inline constexpr unsigned kRansZerosAreRare = 0x80;

std::size_t rans_lanes(std::size_t elements);
// The probability byte if `ones` of `bits` > 0 bits are set: the nearest 256th, at least 1, at most 127 (which loses
// 2e-5 bits an element).
std::uint8_t rans_probability(std::size_t ones, std::size_t bits);

// Computes x / f for all x < 256 f as (x + increment) * multiplier >> 16 >> shift.
struct RansDivision {
  std::uint16_t multiplier, increment, shift;
};
// 1 <= frequency <= 255.
const RansDivision& rans_division(unsigned frequency);

}  // namespace tg::kernels

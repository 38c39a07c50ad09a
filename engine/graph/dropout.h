// Dropout's mask: a function of (seed, stream position of the sample, operator), so that a sample loses the same
// features whichever member computes it, in forward and in backward alike.
//
//   block b of Philox: key = seed, counter = {b, position low, kDomain | operator, position high}
//   feature i: 16 bits, half i mod 8 of block i / 8, low half of a word first
//   a feature is dropped if its bits are below T = round(65536 * probability), else scaled by 65536 / (65536 - T)
//
// kDomain has bit 30 set, which numbers of segments never have, and bit 28, which the data's domains do not have
// (engine/data/draws.h): no counter serves two purposes. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>

namespace tg::engine {

class DropoutMask {
 public:
  static constexpr std::uint32_t kDomain = 0x50000000;

  // probability in [0, 1): values that round to 1 are taken as the largest below it.
  DropoutMask(double probability, std::uint64_t seed, std::size_t index_of_operator);

  // Computes y = x * mask; x and y may be the same memory.
  void apply(std::uint64_t position, std::span<const float> x, std::span<float> y) const;

  std::uint32_t threshold() const { return threshold_; }
  float scale() const { return scale_; }

 private:
  std::uint32_t threshold_;
  float scale_;
  std::uint64_t seed_;
  std::uint32_t operator_;
};

}  // namespace tg::engine

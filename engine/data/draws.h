// A sequence of random numbers with an address: key = seed, counter = {block, index low, domain, index high}. The draws
// depend on (seed, domain, index) alone, so they are the same on every node, in any order, for any number of members.
// The domains have bit 30 set and segment numbers never do, so ternarizing under the same seed uses other draws. One
// object per thread; cheap to make.
#pragma once

#include <cstdint>

namespace tg::engine {

enum class DrawDomain : std::uint32_t {
  kShuffle = 0x40000001,       // index = epoch
  kAugment = 0x40000002,       // index = stream position
  kDigitsTrain = 0x40000003,   // index = image
  kDigitsTest = 0x40000004,    // index = image
  kHoldOut = 0x40000005,       // index = class
  kFractalClass = 0x40000006,  // index = class
  kFractalTrain = 0x40000007,  // index = image
  kFractalTest = 0x40000008,   // index = image
};

class Draws {
 public:
  Draws(std::uint64_t seed, DrawDomain domain, std::uint64_t index);

  std::uint32_t word() {
    if (used_ == 4) refill();
    return words_[used_++];
  }
  // Uniform over [0, bound), without the bias of a plain modulo: words below the remainder are drawn again. bound > 0.
  std::uint32_t below(std::uint32_t bound) {
    const std::uint32_t remainder = (0u - bound) % bound;  // 2^32 mod bound
    std::uint32_t w = word();
    while (w < remainder) w = word();
    return w % bound;
  }
  // Multiples of 2^-32 in [low, low + (high - low)); one rounding per operation, so the same on every machine.
  double between(double low, double high) { return low + (high - low) * (word() * 0x1p-32); }

 private:
  void refill();

  std::uint64_t seed_;
  std::uint32_t counter_[4];
  std::uint32_t words_[4];
  int used_ = 4;
};

}  // namespace tg::engine

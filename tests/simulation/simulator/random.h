// The only source of chance in a simulation: the same numbers from the same seed on every machine.
#pragma once

#include <cstdint>

namespace tg::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014): every seed is good, also 0, 1, 2, ...
  std::uint64_t word() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // Uniform in [least, most]; the bias of the modulo does not matter here.
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + word() % (most - least + 1); }
  bool one_in(std::uint64_t n) { return word() % n == 0; }
  double unit() { return static_cast<double>(word() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace tg::simulation

// The only source of chance in a simulation: the same numbers from the same seed on every machine.
#pragma once

#include <cstdint>
#include <random>

namespace tg::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t word() { return engine_(); }
  // Uniform in [least, most]; the bias of the modulo does not matter here.
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + engine_() % (most - least + 1); }
  bool one_in(std::uint64_t n) { return engine_() % n == 0; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace tg::simulation

// Generated gradients, which a replayed run exchanges if no recorded ones are given.
//
// A share rho of the elements is normal with deviation kDeviation, the rest 0; rho is chosen so that the codes of
// clip-sigma 2.5 have the wanted share of zeros. With t = 2.5 sqrt(rho) (the clip bound over the deviation of the
// normal part) an element's code is nonzero with probability
//
//   rho * E min(|z|, t) / t * 255/256,   E min(|z|, t) = sqrt(2/pi) (1 - exp(-t^2/2)) + t erfc(t / sqrt 2)
//
// which is 0.316 at rho = 1: a plain normal gradient has 68 % zeros, real ones have more. Each element has its own
// Philox word (kernels::philox4x32), so a value depends on seed, rank, segment and index only. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tg::engine {

class GaussianGradients {
 public:
  static constexpr double kDeviation = 0.01;

  explicit GaussianGradients(double zeros);
  // Sets values[i] to element first + i of the segment; first is a multiple of 4.
  void fill(std::uint64_t seed, std::uint32_t rank, std::uint32_t segment, std::span<float> values,
            std::size_t first = 0) const;
  double normal_share() const { return normal_of_65536_ / 65536.0; }  // rho

 private:
  std::uint32_t normal_of_65536_;
};

}  // namespace tg::engine

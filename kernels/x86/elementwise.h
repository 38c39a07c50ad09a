// Sums and averages over registers of floats; `Floats` is the instruction set's (vector.h). Internal linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/require.h"

namespace tg::kernels {
namespace {

template <class Floats>
inline void accumulate_floats_x86(std::span<const std::byte> addend, std::span<float> total) {
  require_same_size(total.size() * sizeof(float), addend.size());
  const std::byte* const from = addend.data();
  float* const to = total.data();
  for (std::size_t i = 0; i < total.size(); i += Floats::kWidth) {
    (Floats::load(to + i) + Floats::load(from + i * sizeof(float))).store(to + i);
  }
}

template <class Floats>
inline void add_scaled_x86(std::span<const float> parameters, float factor, std::span<float> gradient) {
  require_same_size(gradient.size(), parameters.size());
  const float* const from = parameters.data();
  float* const to = gradient.data();
  const Floats factors = Floats::all(factor);
  for (std::size_t i = 0; i < gradient.size(); i += Floats::kWidth) {
    (Floats::load(to + i) + factors * Floats::load(from + i)).store(to + i);
  }
}

template <class Floats>
inline void accumulate_scaled_x86(ConstPlanes codes, float scale, std::span<float> total) {
  require_same_size(total.size(), codes.nonzero.size() * kWordBits);
  require_same_size(total.size(), codes.negative.size() * kWordBits);
  const Floats plus = Floats::all(scale), minus = Floats::all(-scale);
  float* to = total.data();
  for (std::size_t w = 0; w < codes.nonzero.size(); ++w) {
    std::uint64_t nonzero = codes.nonzero.data()[w];
    std::uint64_t negative = codes.negative.data()[w];
    for (std::size_t i = 0; i < kWordBits; i += Floats::kWidth, to += Floats::kWidth) {
      const Floats old = Floats::load(to);
      chosen(old, old + chosen(plus, minus, negative), nonzero).store(to);
      nonzero >>= Floats::kWidth;
      negative >>= Floats::kWidth;
    }
  }
}

template <class Floats>
inline void average_x86(std::span<const float> parameters, float rate, std::span<float> average) {
  require_same_size(average.size(), parameters.size());
  const float* const from = parameters.data();
  float* const to = average.data();
  const Floats rates = Floats::all(rate);
  for (std::size_t i = 0; i < average.size(); i += Floats::kWidth) {
    const Floats old = Floats::load(to + i);
    canonical(old + rates * (Floats::load(from + i) - old)).store(to + i);
  }
}

}  // namespace
}  // namespace tg::kernels

// The upper half of a float32: its sign, its exponent and 7 bits of its mantissa.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/bodies/pack.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// Rounds to the nearest, ties to even. NaN stays NaN.
TG_HOST_DEVICE inline Bf16 to_bf16(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
TG_HOST_DEVICE inline float to_float(Bf16 value) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
}

// Converts a value from one type to another.
template <class To, class From>
TG_HOST_DEVICE To converted(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<To, float>) {
    return to_float(value);
  } else {
    return to_bf16(value);
  }
}

// An operation for Each (elementwise.h).
struct RoundToBf16 {
  const float* x;
  Bf16* y;

  bool allows_wide() const { return bodies::allows_wide(x, y); }
  template <int kWidth>
  TG_HOST_DEVICE void run(std::uint64_t i) const {
    const Pack<float, kWidth> values = load<kWidth>(x + i);
    Pack<Bf16, kWidth> rounded;
    for (int e = 0; e < kWidth; ++e) rounded.at[e] = to_bf16(values.at[e]);
    store(y + i, rounded);
  }
};

}  // namespace tg::engine::cuda::bodies

// Floats in the bodies: their bits, and vectors of four that a thread reads and writes at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/constants.h"
#include "kernels/cuda/host_device.h"

namespace tg::kernels::cuda {

struct alignas(16) Floats4 {
  float at[4];
};
inline constexpr std::size_t kVector = 4;  // elements

TG_HOST_DEVICE inline Floats4 load(const float* from) {
  Floats4 values;
  __builtin_memcpy(&values, __builtin_assume_aligned(from, alignof(Floats4)), sizeof values);
  return values;
}

TG_HOST_DEVICE inline void store(const Floats4& values, float* to) {
  void* const at = to;  // nvcc accepts no other pointer here
  __builtin_memcpy(__builtin_assume_aligned(at, alignof(Floats4)), &values, sizeof values);
}

TG_HOST_DEVICE inline std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
TG_HOST_DEVICE inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

// Replaces every NaN by the canonical one.
TG_HOST_DEVICE inline float canonical(float value) { return value == value ? value : float_of(kCanonicalNan); }

}  // namespace tg::kernels::cuda

// Converts floats to float16 and back; `Floats` is the instruction set's register of floats (vector.h). Internal
// linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/require.h"

namespace tg::kernels {
namespace {

inline constexpr std::size_t kFloat16Bytes = 2;

template <class Floats>
inline void encode_float16_x86(std::span<const float> values, std::span<std::byte> payload) {
  require_same_size(values.size() * kFloat16Bytes, payload.size());
  const float* const from = values.data();
  std::byte* const to = payload.data();
  for (std::size_t i = 0; i < values.size(); i += Floats::kWidth)
    Floats::load(from + i).store_float16(to + i * kFloat16Bytes);
}

template <class Floats>
inline void accumulate_float16_x86(std::span<const std::byte> addend, std::span<float> total) {
  require_same_size(total.size() * kFloat16Bytes, addend.size());
  const std::byte* const from = addend.data();
  float* const to = total.data();
  for (std::size_t i = 0; i < total.size(); i += Floats::kWidth) {
    (Floats::load(to + i) + Floats::load_float16(from + i * kFloat16Bytes)).store(to + i);
  }
}

template <class Floats>
inline void decode_float16_x86(std::span<const std::byte> payload, std::span<float> values) {
  require_same_size(values.size() * kFloat16Bytes, payload.size());
  const std::byte* const from = payload.data();
  float* const to = values.data();
  for (std::size_t i = 0; i < values.size(); i += Floats::kWidth) {
    Floats::load_float16(from + i * kFloat16Bytes).store(to + i);
  }
}

}  // namespace
}  // namespace tg::kernels

#include <bit>
#include <cstring>

#include "kernels/require.h"
#include "kernels/scalar/functions.h"

// binary16: 1 sign bit, 5 of exponent (bias 15), 10 of mantissa; binary32: 1, 8 (bias 127), 23.
namespace tg::kernels::scalar {
namespace {

constexpr std::uint32_t kInfinity = 0x7F800000;        // binary32's infinity
constexpr std::uint32_t kFloat16Infinity = 0x7C00;     // binary16's infinity
constexpr std::uint32_t kQuiet = 0x0200;               // the bit that is set in a quiet NaN
constexpr std::uint32_t kSmallestNormal = 113U << 23;  // 2^-14
constexpr std::uint32_t kTooLarge = 143U << 23;        // 2^16: infinity, whatever the rounding

// `bits` without its last `count` bits, rounded to nearest, ties to even.
std::uint32_t shifted(std::uint32_t bits, unsigned count) {
  const std::uint32_t below_half = (1U << (count - 1)) - 1;
  return (bits + below_half + (bits >> count & 1U)) >> count;
}

std::uint16_t to_float16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t half = 0;
  if (magnitude > kInfinity) {
    half = kFloat16Infinity | kQuiet | (magnitude >> 13 & 0x3FFU);
  } else if (magnitude >= kTooLarge) {
    half = kFloat16Infinity;
  } else if (magnitude >= kSmallestNormal) {
    half = shifted(magnitude - (112U << 23), 13);  // a carry goes into the exponent, up to infinity
  } else if (const unsigned exponent = magnitude >> 23; exponent >= 102) {
    half = shifted((magnitude & 0x7FFFFFU) | 0x800000U, 126 - exponent);  // a subnormal, in units of 2^-24
  }
  return static_cast<std::uint16_t>(sign | half);
}

float to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? kQuiet : 0;
    return std::bit_cast<float>(sign | kInfinity | (mantissa | quiet) << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

float half_at(std::span<const std::byte> payload, std::size_t i) {
  std::uint16_t half;
  std::memcpy(&half, payload.data() + i * sizeof half, sizeof half);
  return to_float(half);
}

}  // namespace

void encode_float16(std::span<const float> values, std::span<std::byte> payload) {
  require_same_size(values.size() * sizeof(std::uint16_t), payload.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = to_float16(values[i]);
    std::memcpy(payload.data() + i * sizeof half, &half, sizeof half);
  }
}

void accumulate_float16(std::span<const std::byte> addend, std::span<float> total) {
  require_same_size(total.size() * sizeof(std::uint16_t), addend.size());
  for (std::size_t i = 0; i < total.size(); ++i) total[i] = total[i] + half_at(addend, i);
}

void decode_float16(std::span<const std::byte> payload, std::span<float> values) {
  require_same_size(values.size() * sizeof(std::uint16_t), payload.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = half_at(payload, i);
}

}  // namespace tg::kernels::scalar

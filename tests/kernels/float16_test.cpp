// float16 against a conversion that is obviously right: the nearest of all float16 numbers, found by searching.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

constexpr std::size_t kFloat16Count = 1 << 16;
constexpr std::uint16_t kFloat16Infinity = 0x7C00;

double value_of(std::uint16_t half) {  // if it is finite, by the definition
  const int exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

std::uint16_t nearest(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint16_t low = 0, high = kFloat16Infinity;  // value_of of infinity's bits is 2^16, where the next half would be
  while (high - low > 1) {
    const auto middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value_of(low), above = value_of(high) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (up ? high : low));
}

std::vector<std::uint16_t> encoded(const Kernels& kernels, std::span<const float> values) {
  std::vector<std::byte> payload(values.size() * 2 + 1);
  kernels.encode_float16(values, std::span(payload).subspan(1));  // at an odd address
  std::vector<std::uint16_t> float16(values.size());
  if (!float16.empty()) std::memcpy(float16.data(), payload.data() + 1, float16.size() * 2);
  return float16;
}

AlignedArray<float> decoded(const Kernels& kernels, std::span<const std::uint16_t> float16) {
  std::vector<std::byte> payload(float16.size() * 2 + 1);
  if (!float16.empty()) std::memcpy(payload.data() + 1, float16.data(), float16.size() * 2);
  AlignedArray<float> values(float16.size());
  kernels.decode_float16(std::span(payload).subspan(1), values.span());
  return values;
}

std::vector<std::uint16_t> all_float16() {
  std::vector<std::uint16_t> float16(kFloat16Count);
  for (std::size_t i = 0; i < kFloat16Count; ++i) float16[i] = static_cast<std::uint16_t>(i);
  return float16;
}

class Float16Test : public EveryVariant {};
TG_TEST_EVERY_VARIANT(Float16Test);

TEST_P(Float16Test, DecodesAllOfThem) {
  const auto float16 = all_float16();
  const auto values = decoded(kernels(), float16);
  EXPECT_TRUE(same_bytes(values, decoded(scalar_variant(), float16))) << "bits of a NaN included";
  for (std::size_t i = 0; i < kFloat16Count; ++i) {
    const std::uint16_t half = float16[i];
    ASSERT_EQ(std::signbit(values[i]), half >= 0x8000) << i;
    if ((half & 0x7FFF) > kFloat16Infinity) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else if ((half & 0x7FFF) == kFloat16Infinity) {
      ASSERT_TRUE(std::isinf(values[i])) << i;
    } else {
      ASSERT_EQ(static_cast<double>(values[i]), value_of(half)) << i;
    }
  }
}

TEST_P(Float16Test, EncodesEveryHalfToItself) {
  const auto float16 = all_float16();
  const auto again = encoded(kernels(), decoded(kernels(), float16).span());
  for (std::size_t i = 0; i < kFloat16Count; ++i) {
    const bool nan = (i & 0x7FFF) > kFloat16Infinity;
    ASSERT_EQ(again[i], nan ? (float16[i] | 0x0200) : float16[i]);
  }
}

// Every tie between two neighbouring float16 numbers, and the floats on both sides of it.
TEST_P(Float16Test, RoundsTiesToEven) {
  AlignedArray<float> values(padded(std::size_t{kFloat16Infinity} * 6));
  for (std::size_t i = 0; i < kFloat16Infinity; ++i) {
    const double tie = (value_of(static_cast<std::uint16_t>(i)) + value_of(static_cast<std::uint16_t>(i + 1))) / 2;
    for (std::size_t n = 0; n < 3; ++n) {
      const float near = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(tie)) +
                                              static_cast<std::uint32_t>(n) - 1);
      values[6 * i + 2 * n] = near;
      values[6 * i + 2 * n + 1] = -near;
    }
  }
  const auto float16 = encoded(kernels(), values.span());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(float16[i], nearest(values[i])) << values[i];
}

TEST_P(Float16Test, RoundsMillionsOfFloatsToTheNearest) {
  constexpr std::size_t kCount = 1 << 20;
  std::mt19937 random(5);
  AlignedArray<float> values(kCount);
  for (int round = 0; round < 3; ++round) {
    for (float& value : values) {
      // Any bits in the first round, then exponents around the float16 numbers' own.
      const std::uint32_t bits = static_cast<std::uint32_t>(random());
      value = std::bit_cast<float>(round == 0 ? bits : (bits & 0x807FFFFF) | (100 + (bits >> 23) % 45) << 23);
    }
    const auto float16 = encoded(kernels(), values.span());
    ASSERT_EQ(float16, encoded(scalar_variant(), values.span())) << "bits of a NaN included";
    for (std::size_t i = 0; i < kCount; ++i) {
      if (std::isnan(values[i])) {
        ASSERT_GT(float16[i] & 0x7FFF, kFloat16Infinity);
      } else {
        ASSERT_EQ(float16[i], nearest(values[i])) << values[i];
      }
    }
  }
}

TEST_P(Float16Test, AccumulateTheirDecodedValues) {
  const auto values = gaussian(512 * 9, 3);
  std::vector<std::byte> payload(values.size() * 2);
  kernels().encode_float16(values.span(), payload);
  AlignedArray<float> rounded(values.size()), total = gaussian(values.size(), 4), want = gaussian(values.size(), 4);
  kernels().decode_float16(payload, rounded.span());
  kernels().accumulate_float16(payload, total.span());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = want[i] + rounded[i];
  EXPECT_TRUE(same_bytes(total, want));
  kernels().encode_float16({}, {});
  kernels().decode_float16({}, {});
  kernels().accumulate_float16({}, {});
}

}  // namespace
}  // namespace tg::kernels::test

// float16 against a conversion that is obviously right: the nearest of all halves, found by searching.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

constexpr std::size_t kHalves = 1 << 16;
constexpr std::uint16_t kHalfInfinity = 0x7C00;

double value_of(std::uint16_t half) {  // of a finite one, by the definition
  const int exponent = half >> 10 & 0x1F, mantissa = half & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return half >> 15 != 0 ? -magnitude : magnitude;
}

std::uint16_t nearest(float value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  std::uint16_t low = 0, high = kHalfInfinity;  // value_of of infinity's bits is 2^16, where the next half would be
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
  kernels.encode_halves(values, std::span(payload).subspan(1));  // at an odd address
  std::vector<std::uint16_t> halves(values.size());
  if (!halves.empty()) std::memcpy(halves.data(), payload.data() + 1, halves.size() * 2);
  return halves;
}

AlignedArray<float> decoded(const Kernels& kernels, std::span<const std::uint16_t> halves) {
  std::vector<std::byte> payload(halves.size() * 2 + 1);
  if (!halves.empty()) std::memcpy(payload.data() + 1, halves.data(), halves.size() * 2);
  AlignedArray<float> values(halves.size());
  kernels.decode_halves(std::span(payload).subspan(1), values.span());
  return values;
}

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> halves(kHalves);
  for (std::size_t i = 0; i < kHalves; ++i) halves[i] = static_cast<std::uint16_t>(i);
  return halves;
}

class HalvesTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(HalvesTest);

TEST_P(HalvesTest, DecodesAllOfThem) {
  const auto halves = all_halves();
  const auto values = decoded(kernels(), halves);
  EXPECT_TRUE(same_bytes(values, decoded(scalar_variant(), halves))) << "bits of a NaN included";
  for (std::size_t i = 0; i < kHalves; ++i) {
    const std::uint16_t half = halves[i];
    ASSERT_EQ(std::signbit(values[i]), half >= 0x8000) << i;
    if ((half & 0x7FFF) > kHalfInfinity) {
      ASSERT_TRUE(std::isnan(values[i])) << i;
    } else if ((half & 0x7FFF) == kHalfInfinity) {
      ASSERT_TRUE(std::isinf(values[i])) << i;
    } else {
      ASSERT_EQ(static_cast<double>(values[i]), value_of(half)) << i;
    }
  }
}

TEST_P(HalvesTest, EncodesEveryHalfToItself) {
  const auto halves = all_halves();
  const auto again = encoded(kernels(), decoded(kernels(), halves).span());
  for (std::size_t i = 0; i < kHalves; ++i) {
    const bool nan = (i & 0x7FFF) > kHalfInfinity;
    ASSERT_EQ(again[i], nan ? (halves[i] | 0x0200) : halves[i]);
  }
}

// Every tie between two neighbouring halves, and the floats on both sides of it.
TEST_P(HalvesTest, RoundsTiesToEven) {
  AlignedArray<float> values(padded(std::size_t{kHalfInfinity} * 6));
  for (std::size_t i = 0; i < kHalfInfinity; ++i) {
    const double tie = (value_of(static_cast<std::uint16_t>(i)) + value_of(static_cast<std::uint16_t>(i + 1))) / 2;
    for (std::size_t n = 0; n < 3; ++n) {
      const float near = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(tie)) +
                                              static_cast<std::uint32_t>(n) - 1);
      values[6 * i + 2 * n] = near;
      values[6 * i + 2 * n + 1] = -near;
    }
  }
  const auto halves = encoded(kernels(), values.span());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(halves[i], nearest(values[i])) << values[i];
}

TEST_P(HalvesTest, RoundsMillionsOfFloatsToTheNearest) {
  constexpr std::size_t kCount = 1 << 20;
  std::mt19937 random(5);
  AlignedArray<float> values(kCount);
  for (int round = 0; round < 3; ++round) {
    for (float& value : values) {
      // Any bits in the first round, then exponents around the halves' own.
      const std::uint32_t bits = static_cast<std::uint32_t>(random());
      value = std::bit_cast<float>(round == 0 ? bits : (bits & 0x807FFFFF) | (100 + (bits >> 23) % 45) << 23);
    }
    const auto halves = encoded(kernels(), values.span());
    ASSERT_EQ(halves, encoded(scalar_variant(), values.span())) << "bits of a NaN included";
    for (std::size_t i = 0; i < kCount; ++i) {
      if (std::isnan(values[i])) {
        ASSERT_GT(halves[i] & 0x7FFF, kHalfInfinity);
      } else {
        ASSERT_EQ(halves[i], nearest(values[i])) << values[i];
      }
    }
  }
}

TEST_P(HalvesTest, AccumulateWhatTheyDecodeTo) {
  const auto values = gaussian(512 * 9, 3);
  std::vector<std::byte> payload(values.size() * 2);
  kernels().encode_halves(values.span(), payload);
  AlignedArray<float> rounded(values.size()), total = gaussian(values.size(), 4), want = gaussian(values.size(), 4);
  kernels().decode_halves(payload, rounded.span());
  kernels().accumulate_halves(payload, total.span());
  for (std::size_t i = 0; i < want.size(); ++i) want[i] = want[i] + rounded[i];
  EXPECT_TRUE(same_bytes(total, want));
  kernels().encode_halves({}, {});
  kernels().decode_halves({}, {});
  kernels().accumulate_halves({}, {});
}

}  // namespace
}  // namespace tg::kernels::test

#include <cmath>
#include <limits>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

class StatisticsTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(StatisticsTest);

TEST_P(StatisticsTest, EqualTheScalarOnesBitForBit) {
  for (const std::size_t elements : kLengths) {
    for (const float sigma : {1e-3F, 1.0F, 1e-15F}) {
      const auto gradient = gaussian(elements, elements + 1, sigma, elements / 7);
      const Statistics got = kernels().statistics(gradient.span());
      const Statistics want = scalar_variant().statistics(gradient.span());
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got.sum), std::bit_cast<std::uint64_t>(want.sum)) << elements;
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got.sum_squares), std::bit_cast<std::uint64_t>(want.sum_squares));
      EXPECT_EQ(got.max_abs, want.max_abs);
      EXPECT_TRUE(got.finite);
    }
  }
}

TEST_P(StatisticsTest, AgreeWithSumsInDouble) {
  constexpr double kTolerance = 1e-6;  // 64 float additions per lane and block err by 64 * 2^-24 = 3.8e-6 at worst
  const auto gradient = gaussian(512 * 301, 7, 0.25F, 100);
  double sum = 0, sum_abs = 0, squares = 0;
  float largest = 0;
  for (const float g : gradient) {
    sum += g;
    sum_abs += std::fabs(g);
    squares += static_cast<double>(g) * g;
    largest = std::max(largest, std::fabs(g));
  }
  const Statistics got = kernels().statistics(gradient.span());
  EXPECT_NEAR(got.sum, sum, kTolerance * sum_abs);
  EXPECT_NEAR(got.sum_squares, squares, kTolerance * squares);
  EXPECT_EQ(got.max_abs, largest);
}

TEST_P(StatisticsTest, AreExactForOnes) {
  AlignedArray<float> ones(512 * 9);
  for (float& value : ones) value = -1;
  const Statistics got = kernels().statistics(ones.span());
  EXPECT_EQ(got.sum, -4608);
  EXPECT_EQ(got.sum_squares, 4608);
  EXPECT_EQ(got.max_abs, 1);
}

TEST_P(StatisticsTest, AreZeroForNoElements) {
  const Statistics got = kernels().statistics({});
  EXPECT_EQ(got.sum, 0);
  EXPECT_EQ(got.sum_squares, 0);
  EXPECT_EQ(got.max_abs, 0);
  EXPECT_TRUE(got.finite);
}

TEST_P(StatisticsTest, SeeANonFiniteValueAnywhere) {
  auto gradient = gaussian(512 * 5, 3);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const float kept = gradient[i];
    for (const float odd : {kInfinity, -kInfinity, kNan, -kNan}) {
      gradient[i] = odd;
      ASSERT_FALSE(kernels().statistics(gradient.span()).finite) << odd << " at " << i;
    }
    gradient[i] = kept;
  }
  EXPECT_TRUE(kernels().statistics(gradient.span()).finite);
}

TEST_P(StatisticsTest, TakeTheLargestFloatsAsFinite) {
  AlignedArray<float> gradient(512);
  gradient[0] = std::numeric_limits<float>::max();
  gradient[1] = std::numeric_limits<float>::denorm_min();
  const Statistics got = kernels().statistics(gradient.span());
  EXPECT_TRUE(got.finite);
  EXPECT_EQ(got.max_abs, std::numeric_limits<float>::max());
}

TEST(ClipBound, IsTheMultipleOfTheStandardDeviation) {
  // Two values, a and -b: mean (a-b)/2, sigma (a+b)/2.
  const Statistics two{.sum = 3 - 1, .sum_squares = 9 + 1, .max_abs = 3, .finite = true};
  EXPECT_FLOAT_EQ(clip_bound(two, 2, 2.5F), 2.5F * 2);
  // Padding does not count: 1000 real elements of 1024.
  const Statistics padded_ones{.sum = 0, .sum_squares = 1000, .max_abs = 1, .finite = true};
  EXPECT_FLOAT_EQ(clip_bound(padded_ones, 1000, 2.5F), 2.5F);
}

TEST(ClipBound, IsInfiniteWhereNothingIsClipped) {
  const Statistics spread{.sum = 0, .sum_squares = 4, .max_abs = 1, .finite = true};
  EXPECT_EQ(clip_bound(spread, 4, 0), kInfinity);
  const Statistics single{.sum = 0.125, .sum_squares = 0.015625, .max_abs = 0.125F, .finite = true};
  EXPECT_EQ(clip_bound(single, 1, 2.5F), kInfinity);
  EXPECT_EQ(clip_bound(Statistics{}, 512, 2.5F), kInfinity);
  const Statistics overflown{.sum = 1e30, .sum_squares = HUGE_VAL, .max_abs = 1e30F, .finite = true};
  EXPECT_EQ(clip_bound(overflown, 512, 2.5F), kInfinity);
}

TEST(ClipBound, IsInfiniteForEqualElementsWhateverTheRounding) {
  for (const float value : {0.1F, 1.0F / 3, 7e-5F}) {
    for (const std::size_t count : {1, 2, 3, 500, 100000}) {
      AlignedArray<float> gradient(padded(count));
      for (std::size_t i = 0; i < count; ++i) gradient[i] = value;
      EXPECT_EQ(clip_bound(scalar_variant().statistics(gradient.span()), count, 2.5F), kInfinity) << value;
    }
  }
}

}  // namespace
}  // namespace tg::kernels::test

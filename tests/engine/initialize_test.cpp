#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "engine/model.h"
#include "kernels/base/aligned_array.h"

namespace tg::engine {
namespace {

AlignedArray<float> initial(const SegmentTable& segments, std::uint64_t seed) {
  AlignedArray<float> parameters(segments.padded_count());
  for (float& each : parameters) each = -1;  // what initialize must overwrite, padding included
  initialize(segments, seed, parameters.data());
  return parameters;
}

std::uint64_t hash_of(const AlignedArray<float>& values) {  // FNV-1a over 32-bit words
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const float each : values) hash = (hash ^ std::bit_cast<std::uint32_t>(each)) * 0x100000001b3ULL;
  return hash;
}

// Frozen: replicas on any machine must start from these bits.
TEST(Initialize, GivesTheSameBitsEverywhere) {
  EXPECT_EQ(hash_of(initial(make_model(ModelKind::kLenet).segments, 1)), 12537999726712485806ULL);
  EXPECT_EQ(hash_of(initial(make_model(ModelKind::kCifarnet).segments, 1)), 322863528315422991ULL);
}

// Half of them come from each sign, and neighbours share a block wherever a part begins.
TEST(Initialize, UniformsFillTheirBoundAndDependOnNoSplit) {
  Segment segment;
  segment.name = "fc.weight";
  segment.shape = {100'003};
  segment.element_count = 100'003;
  segment.initial_bound = 0.25;
  std::vector<float> whole(segment.padded_count(), -1);
  initialize(segment, 3, 7, 0, whole);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < segment.element_count; ++i) {
    ASSERT_LT(std::abs(whole[i]), 0.25F);
    sum += whole[i];
    squares += static_cast<double>(whole[i]) * whole[i];
  }
  const double n = static_cast<double>(segment.element_count), deviation = 0.25 / std::sqrt(3.0);
  EXPECT_NEAR(sum / n, 0, 4 * deviation / std::sqrt(n));
  EXPECT_NEAR(squares / n, deviation * deviation, 4 * deviation * deviation / std::sqrt(n));
  for (std::size_t i = segment.element_count; i < whole.size(); ++i) EXPECT_EQ(whole[i], 0.0F);
  for (const std::size_t first : {1u, 2u, 3u, 64u, 65'537u}) {
    std::vector<float> part(50, -1);
    initialize(segment, 3, 7, first, part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
}

TEST(Initialize, DependsOnTheSeed) {
  const SegmentTable segments = make_model(ModelKind::kLenet).segments;
  EXPECT_NE(hash_of(initial(segments, 1)), hash_of(initial(segments, 2)));
}

TEST(Initialize, ConstantsAndPaddingAreExact) {
  const SegmentTable segments = make_model(ModelKind::kCifarnet).segments;
  const AlignedArray<float> parameters = initial(segments, 3);
  for (const Segment& segment : segments.segments()) {
    for (std::size_t i = 0; i < segment.padded_count(); ++i) {
      const float value = parameters[segment.offset + i];
      if (i >= segment.element_count) {
        ASSERT_EQ(value, 0.0F) << segment.name << ' ' << i;
      } else if (segment.initial_deviation == 0) {
        ASSERT_EQ(value, static_cast<float>(segment.initial_value)) << segment.name << ' ' << i;
      }
    }
  }
}

TEST(Initialize, WeightsAreNormalAndCutAtTwoDeviations) {
  // A standard normal cut at 2: its deviation sqrt(1 - 4 phi(2) / (2 Phi(2) - 1)) and the share within 1.
  const double kDeviation = 0.8796256610342398;
  const double kWithinOne = 0.6826894921370859 / 0.9544997361036416;
  const double kSigmas = 4.5;  // sampling error allowed
  const SegmentTable segments = make_model(ModelKind::kLenet).segments;
  const AlignedArray<float> parameters = initial(segments, 4);
  for (const Segment& segment : segments.segments()) {
    if (segment.initial_deviation == 0) continue;
    const double n = static_cast<double>(segment.element_count);
    double sum = 0, squares = 0, within = 0;
    for (std::size_t i = 0; i < segment.element_count; ++i) {
      const double x = parameters[segment.offset + i] / segment.initial_deviation;
      ASSERT_LE(std::abs(x), 2.000001) << segment.name;
      sum += x;
      squares += x * x;
      within += std::abs(x) <= 1 ? 1 : 0;
    }
    EXPECT_NEAR(sum / n, 0, kSigmas * kDeviation / std::sqrt(n)) << segment.name;
    // x^2 of the cut normal has deviation 0.88 (numerically), the mean of n of them that over sqrt(n).
    EXPECT_NEAR(squares / n, kDeviation * kDeviation, kSigmas * 0.9 / std::sqrt(n)) << segment.name;
    EXPECT_NEAR(within / n, kWithinOne, kSigmas * 0.46 / std::sqrt(n)) << segment.name;
  }
}

}  // namespace
}  // namespace tg::engine

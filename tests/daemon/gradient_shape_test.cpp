// Lengths, angles and gaps that can be computed by hand.
#include "daemon/simulate/gradient_shape.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace tg::daemon {
namespace {

constexpr float kNone = std::numeric_limits<float>::infinity();
constexpr double kRounding = 1e-12;

TEST(GradientShape, NothingIsClippedWithoutABound) {
  const std::vector<float> values = {3, -4};
  const GradientShape shape = shape_of({{values, kNone}});
  EXPECT_EQ(shape.before.max_abs, 4);
  EXPECT_EQ(shape.before.length, 5);
  EXPECT_NEAR(shape.before.gap, 4 * 7 / 25.0, kRounding);
  EXPECT_EQ(shape.clipped.histogram, shape.before.histogram);
  EXPECT_EQ(shape.length_ratio, 1);
  EXPECT_EQ(shape.angle_degrees, 0);
  EXPECT_EQ(shape.clipped_count, 0u);
}

// (1, sqrt 3) at 60 degrees, clipped to (1, 1) at 45.
TEST(GradientShape, AClippedVectorIsShorterAndTurns) {
  const std::vector<float> values = {1, std::sqrt(3.0f)};
  const GradientShape shape = shape_of({{values, 1}});
  constexpr double kOfFloats = 1e-5;
  EXPECT_NEAR(shape.angle_degrees, 15, kOfFloats);
  EXPECT_NEAR(shape.length_ratio, std::sqrt(0.5), kOfFloats);
  EXPECT_EQ(shape.clipped.max_abs, 1);
  EXPECT_NEAR(shape.clipped.gap, 1, kRounding) << "all as large as the largest: codes of it add nothing";
  EXPECT_EQ(shape.clipped_count, 1u);
}

TEST(GradientShape, BothHistogramsHaveTheBinsOfTheGradient) {
  const std::vector<float> values = {-4, -1, 0, 0.05f, 4};
  const GradientShape shape = shape_of({{values, 2}});
  GradientShape::Histogram before{}, clipped{};
  before[0] = before[24] = before[63] = 1;
  before[32] = 2;  // a bin is 0.125 wide
  clipped[16] = clipped[24] = clipped[48] = 1;
  clipped[32] = 2;
  EXPECT_EQ(shape.before.histogram, before);
  EXPECT_EQ(shape.clipped.histogram, clipped);
}

TEST(GradientShape, PartsHaveTheirOwnBoundsAndAreOneVector) {
  const std::vector<float> one = {3, 0}, other = {-8};
  const GradientShape shape = shape_of({{one, 1}, {other, 4}});
  EXPECT_NEAR(shape.before.length, std::sqrt(73), kRounding);
  EXPECT_NEAR(shape.clipped.length, std::sqrt(17), kRounding);
  EXPECT_EQ(shape.clipped.max_abs, 4);
  EXPECT_NEAR(shape.clipped.gap, 4 * 5 / 17.0, kRounding);
  EXPECT_NEAR(shape.angle_degrees, std::acos(35 / std::sqrt(73.0 * 17)) * 180 / M_PI, 1e-9);
}

TEST(GradientShape, ZerosHaveNoDirection) {
  const std::vector<float> values(7);
  const GradientShape shape = shape_of({{values, kNone}});
  EXPECT_EQ(shape.before.gap, 0);
  EXPECT_EQ(shape.angle_degrees, 0);
  EXPECT_EQ(shape.length_ratio, 1);
  EXPECT_EQ(shape.before.histogram[32], 7u);
}

}  // namespace
}  // namespace tg::daemon

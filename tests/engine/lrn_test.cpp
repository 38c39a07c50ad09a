// The LRN kernels of every variant: against the formula in double, backward against its differences, all with one
// result.
#include "engine/cpu/lrn/lrn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>
#include <random>
#include <vector>

namespace tg::engine::cpu::lrn {
namespace {

// Some float32 roundings of values below 2, and of a sum of up to 81 of them.
constexpr double kLrnTolerance = 2e-6;
// The step of the differences: error h^2 ~ 1e-8 from curvature, 1e-16/h ~ 1e-12 from rounding.
constexpr double kDifference = 1e-4, kDifferenceTolerance = 1e-5;
constexpr float kCanary = 12345;

using Values = std::vector<float>;  // exactly as long as asked: a sanitizer sees a read behind the end

struct LrnShape {
  std::size_t channels, radius, rows;
};

void PrintTo(const LrnShape& value, std::ostream* out) {
  *out << value.rows << " rows of " << value.channels << " channels, radius " << value.radius;
}

Values random_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> value(-2.0F, 2.0F);
  Values values(count);
  for (float& each : values) each = value(random);
  return values;
}

Window window_of(const LrnShape& shape) { return {shape.channels, shape.radius, 1.25F, 0.1F}; }

// One row in double.
std::vector<double> reference(const Window& of, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (std::size_t c = 0; c < x.size(); ++c) {
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (k + of.radius >= c && k <= c + of.radius) sum += x[k] * x[k];
    }
    y[c] = x[c] * std::pow(of.bias + of.alpha * sum, -0.75);
  }
  return y;
}

struct Result {
  Values y, dx;
};

class Lrn : public testing::TestWithParam<LrnShape> {
 protected:
  const LrnShape& shape() const { return GetParam(); }
  std::size_t elements() const { return shape().channels * shape().rows; }

  Result run(const Kernels& kernels) const {
    const Window window = window_of(shape());
    Values scratch(scratch_floats(window), std::nanf(""));  // whatever is left in it does not matter
    Result result{Values(elements() + 1, kCanary), Values(elements() + 1, kCanary)};
    kernels.forward(window, {shape().rows, x_.data(), result.y.data()}, scratch.data());
    kernels.backward(window, {shape().rows, x_.data(), dy_.data(), result.dx.data()}, scratch.data());
    return result;
  }

  const Values x_ = random_values(elements(), 61), dy_ = random_values(elements(), 62);
};

TEST_P(Lrn, EqualsTheFormulaAndItsDifferences) {
  const Window window = window_of(shape());
  const Result result = run(kScalar);
  for (std::size_t row = 0; row < shape().rows; ++row) {
    const std::size_t at = row * shape().channels;
    std::vector<double> x(x_.begin() + at, x_.begin() + at + shape().channels);
    const std::vector<double> y = reference(window, x);
    for (std::size_t c = 0; c < x.size(); ++c) ASSERT_NEAR(result.y[at + c], y[c], kLrnTolerance) << row << ' ' << c;
    if (row > 2) continue;  // the differences cost channels^2 each
    const auto loss = [&] {
      const std::vector<double> moved = reference(window, x);
      double sum = 0;
      for (std::size_t c = 0; c < x.size(); ++c) sum += dy_[at + c] * moved[c];
      return sum;
    };
    for (std::size_t c = 0; c < x.size(); ++c) {
      const double middle = x[c];
      x[c] = middle + kDifference;
      const double above = loss();
      x[c] = middle - kDifference;
      const double difference = (above - loss()) / (2 * kDifference);
      x[c] = middle;
      ASSERT_NEAR(result.dx[at + c], difference, kDifferenceTolerance) << row << ' ' << c;
    }
  }
}

TEST_P(Lrn, EveryVariantHasTheSameBitsAndStaysInItsRows) {
  const Result expected = run(kScalar);
  EXPECT_EQ(expected.y.back(), kCanary);
  EXPECT_EQ(expected.dx.back(), kCanary);
  for (const Kernels* const variant : available()) {
    const Result result = run(*variant);
    EXPECT_EQ(result.y, expected.y) << variant->name;  // no value is a NaN or a zero of another sign
    EXPECT_EQ(result.dx, expected.dx) << variant->name;
  }
}

TEST_P(Lrn, RowsDoNotDependOnEachOther) {
  const Window window = window_of(shape());
  const Kernels& best = *available().front();
  const Result whole = run(best);
  Values scratch(scratch_floats(window)), y(shape().channels), dx(shape().channels);
  for (std::size_t row = 0; row < shape().rows; ++row) {
    const std::size_t at = row * shape().channels;
    best.forward(window, {1, x_.data() + at, y.data()}, scratch.data());
    best.backward(window, {1, x_.data() + at, dy_.data() + at, dx.data()}, scratch.data());
    ASSERT_TRUE(std::equal(y.begin(), y.end(), whole.y.begin() + at)) << row;
    ASSERT_TRUE(std::equal(dx.begin(), dx.end(), whole.dx.begin() + at)) << row;
  }
}

// One channel, tails before and behind each register's width, a window wider than the row, rows longer than a block.
INSTANTIATE_TEST_SUITE_P(Shapes, Lrn,
                         testing::Values(LrnShape{1, 0, 3}, LrnShape{1, 4, 3}, LrnShape{3, 1, 5}, LrnShape{5, 4, 40},
                                         LrnShape{7, 2, 1}, LrnShape{8, 3, 9}, LrnShape{15, 2, 70}, LrnShape{16, 0, 4},
                                         LrnShape{17, 4, 33}, LrnShape{20, 40, 6}, LrnShape{31, 5, 8},
                                         LrnShape{50, 2, 21}, LrnShape{64, 4, 37}, LrnShape{96, 2, 12},
                                         LrnShape{1100, 4, 3}, LrnShape{64, 4, 0}),
                         [](const testing::TestParamInfo<LrnShape>& each) {
                           return "channels_" + std::to_string(each.param.channels) + "_radius_" +
                                  std::to_string(each.param.radius) + "_rows_" + std::to_string(each.param.rows);
                         });

TEST(LrnVariants, AreThoseOfTheProcessor) {
  ASSERT_FALSE(available().empty());
  EXPECT_STREQ(available().back()->name, "scalar");
#ifdef __x86_64__
  const auto has = [](std::string_view name) {
    for (const Kernels* const each : available()) {
      if (each->name == name) return true;
    }
    return false;
  };
  EXPECT_EQ(has("avx2"), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(has("avx512"), __builtin_cpu_supports("avx512f") != 0);
#endif
}

}  // namespace
}  // namespace tg::engine::cpu::lrn

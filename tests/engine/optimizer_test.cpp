#include "engine/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tg::engine {
namespace {

TEST(Schedule, ConstantStays) {
  const Schedule schedule{.base_rate = 0.0002};
  for (const std::uint64_t step : {0ULL, 1ULL, 300'000ULL}) EXPECT_EQ(learning_rate(schedule, step), 0.0002F);
}

TEST(Schedule, StaircaseStepsDown) {
  const Schedule schedule{.kind = ScheduleKind::kStaircase, .base_rate = 0.04, .factor = 0.1, .every = 100};
  EXPECT_EQ(learning_rate(schedule, 0), 0.04F);
  EXPECT_EQ(learning_rate(schedule, 99), 0.04F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 100), 0.004F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 299), 0.0004F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 700), static_cast<float>(0.04 * std::pow(0.1, 7)));
  // Any number of stairs ends at zero, in little time.
  EXPECT_EQ(learning_rate(schedule, UINT64_MAX), 0.0F);
}

TEST(Schedule, PolynomialReachesZero) {
  for (const double power : {0.5, 1.0, 2.0}) {
    const Schedule schedule{.kind = ScheduleKind::kPolynomial, .base_rate = 0.01, .power = power, .steps = 10'000};
    EXPECT_EQ(learning_rate(schedule, 0), 0.01F);
    for (const std::uint64_t step : {1ULL, 2'500ULL, 9'999ULL}) {
      EXPECT_FLOAT_EQ(learning_rate(schedule, step), static_cast<float>(0.01 * std::pow(1 - step / 10'000.0, power)));
    }
    EXPECT_EQ(learning_rate(schedule, 10'000), 0.0F);
    EXPECT_EQ(learning_rate(schedule, 20'000), 0.0F);
  }
}

TEST(Update, SgdAndMomentumCarryTheRate) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kSgd;
  options.schedule = {.kind = ScheduleKind::kPolynomial, .base_rate = 0.5, .power = 1.0, .steps = 4};
  EXPECT_EQ(update_for_step(options, 2).rate, 0.25F);
  options.kind = OptimizerKind::kMomentum;
  const kernels::Update update = update_for_step(options, 3);
  EXPECT_EQ(update.kind, OptimizerKind::kMomentum);
  EXPECT_EQ(update.rate, 0.125F);
  EXPECT_EQ(update.momentum, 0.9F);
  EXPECT_EQ(update.scale, 0.0F);
  EXPECT_EQ(update.weight_decay, 0.0F);
}

TEST(Update, AdamCorrectsItsBias) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kAdam;
  options.schedule.base_rate = 0.0002;
  for (const std::uint64_t step : {0ULL, 1ULL, 9ULL, 999ULL, 100'000ULL}) {
    const double t = static_cast<double>(step) + 1;
    const double corrected = 0.0002 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
    const kernels::Update update = update_for_step(options, step);
    EXPECT_FLOAT_EQ(update.rate, static_cast<float>(corrected)) << step;
    EXPECT_EQ(update.beta1, 0.9F);
    EXPECT_EQ(update.one_minus_beta1, static_cast<float>(1 - 0.9));
    EXPECT_EQ(update.beta2, 0.999F);
    EXPECT_EQ(update.one_minus_beta2, static_cast<float>(1 - 0.999));
    EXPECT_EQ(update.epsilon, 1e-8F);
  }
}

TEST(Update, SlotsPerOptimizer) {
  EXPECT_EQ(slot_count(OptimizerKind::kSgd), 0);
  EXPECT_EQ(slot_count(OptimizerKind::kMomentum), 1);
  EXPECT_EQ(slot_count(OptimizerKind::kAdam), 2);
}

TEST(Average, RateFallsFromNineTenthsToOneMinusDecay) {
  EXPECT_FLOAT_EQ(average_rate(0.9999, 0), 0.9F);
  EXPECT_FLOAT_EQ(average_rate(0.9999, 10), 1 - 11.0F / 20.0F);
  EXPECT_FLOAT_EQ(average_rate(0.9999, 10'000'000), static_cast<float>(1 - 0.9999));
  EXPECT_EQ(average_rate(0.0, 5), 1.0F);
}

}  // namespace
}  // namespace tg::engine

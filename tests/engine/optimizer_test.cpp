#include "engine/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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

TEST(Schedule, CosineFallsToItsFloor) {
  // Half a unit of the last place for each of the two roundings of std::cos and its sum, and a few of our own.
  constexpr double kTolerance = 1e-15;
  for (const std::uint64_t steps : {1ULL, 2ULL, 3ULL, 20ULL, 9'999ULL, 1'000'000ULL}) {
    const std::uint64_t stride = std::max<std::uint64_t>(steps / 5'000, 1);
    for (std::uint64_t step = 0; step < steps; step += stride) {
      const double angle = std::acos(-1.0) * (static_cast<double>(step) / static_cast<double>(steps));
      ASSERT_NEAR(half_cosine(step, steps), (1 + std::cos(angle)) / 2, kTolerance) << step << " of " << steps;
    }
  }
  const Schedule schedule{.kind = ScheduleKind::kCosine, .base_rate = 0.1, .steps = 1'000, .floor = 0.001};
  EXPECT_EQ(learning_rate(schedule, 0), 0.1F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 500), 0.0505F);
  EXPECT_EQ(learning_rate(schedule, 1'000), 0.001F);
  EXPECT_EQ(learning_rate(schedule, UINT64_MAX), 0.001F);
}

// Frozen: two machines with other bits have other digests.
TEST(Schedule, CosineHasItsBits) {
  const auto bits = [](std::uint64_t step) { return std::bit_cast<std::uint64_t>(half_cosine(step, 1'000)); };
  EXPECT_EQ(bits(0), 0x3ff0000000000000U);
  EXPECT_EQ(bits(1), 0x3feffffad35340ffU);
  EXPECT_EQ(bits(333), 0x3fe803b6aa646232U);
  EXPECT_EQ(bits(501), 0x3fdfe6439d0fb333U);
  EXPECT_EQ(bits(999), 0x3ec4b2b2fc02d8cdU);
}

TEST(Schedule, WarmUpRisesToEverySchedule) {
  for (const ScheduleKind kind : values_of<ScheduleKind>()) {
    Schedule schedule{.kind = kind, .base_rate = 0.1, .factor = 0.5, .every = 7, .steps = 100, .floor = 0.01};
    const auto rate = [&](std::uint64_t warm_up, std::uint64_t step) {
      schedule.warm_up = warm_up;
      return learning_rate(schedule, step);
    };
    EXPECT_FLOAT_EQ(rate(20, 0), 0.1F / 20) << to_word(kind);
    EXPECT_FLOAT_EQ(rate(20, 9), rate(0, 9) / 2) << to_word(kind);
    for (const std::uint64_t step : {19U, 20U, 99U}) EXPECT_EQ(rate(20, step), rate(0, step)) << to_word(kind);
    EXPECT_EQ(rate(1, 0), rate(0, 0)) << to_word(kind);
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

TEST(Update, AdamWDecaysByTheScheduleAndCorrectsTheRoot) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kAdamW;
  options.schedule = {.kind = ScheduleKind::kPolynomial, .base_rate = 0.5, .power = 1.0, .steps = 4};
  options.epsilon = 1e-3;
  for (const std::uint64_t step : {0ULL, 1ULL, 3ULL}) {
    const double t = static_cast<double>(step) + 1, root = std::sqrt(1 - std::pow(0.999, t));
    const double rate = 0.5 * (1 - static_cast<double>(step) / 4);
    const kernels::Update update = update_for_step(options, step);
    EXPECT_EQ(update.kind, OptimizerKind::kAdamW);
    EXPECT_EQ(update.decay_rate, static_cast<float>(rate));
    EXPECT_FLOAT_EQ(update.rate, static_cast<float>(rate * root / (1 - std::pow(0.9, t)))) << step;
    EXPECT_FLOAT_EQ(update.epsilon, static_cast<float>(1e-3 * root)) << step;
  }
}

TEST(Update, SlotsPerOptimizer) {
  EXPECT_EQ(slot_count(OptimizerKind::kSgd), 0);
  EXPECT_EQ(slot_count(OptimizerKind::kMomentum), 1);
  EXPECT_EQ(slot_count(OptimizerKind::kAdam), 2);
  EXPECT_EQ(slot_count(OptimizerKind::kAdamW), 2);
}

TEST(Average, RateFallsFromNineTenthsToOneMinusDecay) {
  EXPECT_FLOAT_EQ(average_rate(0.9999, 0), 0.9F);
  EXPECT_FLOAT_EQ(average_rate(0.9999, 10), 1 - 11.0F / 20.0F);
  EXPECT_FLOAT_EQ(average_rate(0.9999, 10'000'000), static_cast<float>(1 - 0.9999));
  EXPECT_EQ(average_rate(0.0, 5), 1.0F);
}

}  // namespace
}  // namespace tg::engine

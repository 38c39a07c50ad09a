// TernGrad's rule, by numbers that can be computed by hand.
#include "daemon/exchange/code_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tg::daemon {
namespace {

constexpr float kNoBound = std::numeric_limits<float>::infinity();

// Mean 0, sigma 2, largest 8.
kernels::Statistics wide() {
  kernels::Statistics statistics;
  statistics.max_abs = 8;
  statistics.sum = 0;
  statistics.sum_squares = 400;
  return statistics;
}

TEST(CodeRule, ClipsAtSigmasAndAnnouncesNoMoreThanThat) {
  const CodeRule::Own own = CodeRule{}.own(wide(), 100);
  EXPECT_EQ(own.clip, 5);
  EXPECT_EQ(own.scaler, 5);
  EXPECT_EQ((CodeRule{.clip_sigma = 10}.own(wide(), 100).scaler), 8) << "nothing reaches the bound of 20";
  EXPECT_EQ((CodeRule{.clip_sigma = 10, .repo_recipe = true}.own(wide(), 100).scaler), 20);
}

TEST(CodeRule, WithoutClippingItIsTheLargest) {
  for (const bool repo : {false, true}) {
    const CodeRule::Own own = CodeRule{.clip_sigma = 0, .repo_recipe = repo}.own(wide(), 100);
    EXPECT_EQ(own.clip, kNoBound);
    EXPECT_EQ(own.scaler, 8);
  }
}

TEST(CodeRule, AgreesOnTheLargestScaler) {
  EXPECT_EQ(CodeRule{}.agreed(std::vector{1.0F, 3.0F, 2.0F}), 3);
  EXPECT_EQ(CodeRule{}.agreed(std::vector{3.0F, 1.0F}), 3);
  EXPECT_EQ(CodeRule{}.agreed(std::vector{0.0F}), 0);
}

TEST(CodeRule, CodesByTheSharedScalerAndClipsByItsOwnBound) {
  const CodeRule::Own own{.scaler = 2, .clip = 2.5F};
  EXPECT_EQ(CodeRule{}.scale(own, 3).scaler, 3);
  EXPECT_EQ(CodeRule{}.scale(own, 3).clip, 2.5F);
  EXPECT_EQ((CodeRule{.repo_recipe = true}.scale(own, 3).clip), 3) << "their code clips by the shared scaler";
  EXPECT_EQ((CodeRule{.shared = false}.scale(own, 3).scaler), 2);
  EXPECT_EQ((CodeRule{.repo_recipe = true, .shared = false}.scale(own, 3).clip), 2);
}

TEST(CodeRule, ACodeOfOneIsWorthTheScalerOver255Of256) {
  EXPECT_EQ(CodeRule{}.unit(255), 256);
  EXPECT_EQ(CodeRule{}.unit(0), 0);
}

}  // namespace
}  // namespace tg::daemon

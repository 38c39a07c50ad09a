// What batch normalizations measure: the mean over the members, and frames that say something else than they may.
#include "daemon/exchange/batch_statistics.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/simulation/exchange/alone.h"
#include "tests/simulation/exchange/plain_segments.h"

namespace tg::daemon {
namespace {

Per<Rank, std::span<const float>> spans(const Per<Rank, std::vector<float>>& values) {
  return {values.begin(), values.end()};
}

TEST(BatchStatistics, TheMeanIsWeightedAndAddedInTheOrderOfRanks) {
  const BatchStatistics statistics{simulation::plain_segments({2, 1}), {0.5F, 0.3F, 0.2F}};
  const Per<Rank, std::vector<float>> measured = {{1.1F, 3e8F, -7}, {2.3F, -5e8F, 0.7F}, {-4.7F, 1.3F, 1e-3F}};
  const auto add = [&](std::size_t i, std::initializer_list<std::size_t> order) {
    volatile float sum = 0;  // one rounding per operation
    for (const std::size_t rank : order) {
      const volatile float part = statistics.shares[Rank(rank)] * measured[Rank(rank)][i];
      sum = sum + part;
    }
    return static_cast<float>(sum);
  };
  EXPECT_EQ(statistics.mean(spans(measured)),
            (std::vector<float>{add(0, {0, 1, 2}), add(1, {0, 1, 2}), add(2, {0, 1, 2})}));
  EXPECT_NE(add(1, {0, 1, 2}), add(1, {2, 1, 0})) << "an order that shows";
}

TEST(BatchStatistics, ASingleMembersAreItsOwn) {
  const BatchStatistics statistics{simulation::plain_segments({3}), {1}};
  const Per<Rank, std::vector<float>> measured = {{0.1F, -3e-39F, 3e38F}};
  EXPECT_EQ(statistics.mean(spans(measured)), measured[Rank(0)]);
  EXPECT_TRUE(BatchStatistics{}.mean(spans({{}, {}})).empty()) << "a model without any";
}

TEST(BatchStatistics, TheFirstThatIsNotFiniteIsNamed) {
  const BatchStatistics statistics{simulation::plain_segments({2, 1, 3}), {1}};
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kLargest = std::numeric_limits<float>::max();
  EXPECT_EQ(statistics.first_not_finite(std::vector<float>{0, kLargest, -kLargest, 0, 0, 0}), std::nullopt);
  EXPECT_EQ(statistics.first_not_finite(std::vector<float>{0, kInfinity, 0, 0, 0, 0}), 0u);
  EXPECT_EQ(statistics.first_not_finite(std::vector<float>{0, 0, -kInfinity, kInfinity, 0, 0}), 1u);
  EXPECT_EQ(statistics.first_not_finite(std::vector<float>{0, 0, 0, 0, 0, std::numeric_limits<float>::quiet_NaN()}),
            2u);
}

// Step frames may be large: a member that is ahead has sent one, and cannot make others keep more.
TEST(BatchStatistics, OneStepFrameOfTheNextStepIsKept) {
  Alone node(schema::ExchangeKind::kDirect);
  const schema::StepFrame frame{0, 0, 0, 0, {}, {1}};
  node.exchange.on_frame(Rank(1), {77, 1, 1}, frame, nullptr);
  EXPECT_FALSE(node.failure());
  node.exchange.on_frame(Rank(1), {77, 1, 1}, frame, nullptr);
  const std::optional<schema::Fail> cause = node.failure();
  ASSERT_TRUE(cause);
  EXPECT_EQ(cause->message, "node-b sent two step frames in step 1");
}

}  // namespace
}  // namespace tg::daemon

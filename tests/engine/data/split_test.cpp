// How a batch is split: by weight, exactly, and as ever where the weights are equal.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/dataset.h"
#include "tests/seeds.h"

namespace tg::engine {
namespace {

std::vector<int> counts(std::uint64_t total, const std::vector<std::uint16_t>& weights) {
  std::vector<int> all;
  for (const Share& share : split(total, weights)) all.push_back(share.count);
  return all;
}

// The rule of the versions before there were weights: digests of runs depend on it.
Share equal_share(std::uint64_t total, std::uint64_t rank, std::uint64_t members) {
  const std::uint64_t whole = total / members, longer = total % members;
  return {rank * whole + std::min(rank, longer), static_cast<int>(whole + (rank < longer ? 1 : 0))};
}

TEST(Split, EqualWeightsAreTheSplitOfBefore) {
  for (const std::uint16_t weight : {1, 2, 7, 1000})
    for (const std::uint64_t total : {0u, 1u, 3u, 7u, 50u, 64u, 127u, 1024u, 10'000u})
      for (std::uint64_t members = 1; members <= 127; ++members) {
        const std::vector<Share> shares = split(total, std::vector<std::uint16_t>(members, weight));
        for (std::uint64_t rank = 0; rank < members; ++rank) {
          const Share expected = equal_share(total, rank, members);
          ASSERT_EQ(shares[rank].first, expected.first) << total << " " << members << " " << rank;
          ASSERT_EQ(shares[rank].count, expected.count) << total << " " << members << " " << rank;
        }
      }
}

TEST(Split, FollowsTheWeights) {
  EXPECT_EQ(counts(64, {3, 1}), (std::vector{48, 16}));
  EXPECT_EQ(counts(64, {1, 3}), (std::vector{16, 48}));
  EXPECT_EQ(counts(64, {6, 2}), (std::vector{48, 16})) << "only the proportion counts";
  EXPECT_EQ(counts(10, {3, 2, 2}), (std::vector{4, 3, 3})) << "4.29, 2.86, 2.86: the larger remainders";
  EXPECT_EQ(counts(10, {1, 1, 2}), (std::vector{3, 2, 5})) << "2.5, 2.5, 5: the lower rank among equals";
}

TEST(Split, EveryMemberGetsASampleIfThereAreEnough) {
  EXPECT_EQ(counts(64, {1000, 1, 1}), (std::vector{62, 1, 1}));
  EXPECT_EQ(counts(3, {1, 1000, 1000}), (std::vector{1, 1, 1}));
  EXPECT_EQ(counts(12, {1, 1, 9, 100}), (std::vector{1, 1, 1, 9})) << "9 of 110 would be 0.83 of the ten that are left";
  EXPECT_EQ(counts(2, {1, 1, 1000}), (std::vector{0, 0, 2})) << "fewer samples than members: an evaluation";
}

TEST(Split, CoversEverythingInProportion) {
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 draw(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::uint16_t> weights(1 + draw() % 127);
    const std::uint64_t most = draw() % 2 ? 1000 : 5;
    for (std::uint16_t& weight : weights) weight = static_cast<std::uint16_t>(1 + draw() % most);
    const std::uint64_t sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
    const std::uint64_t total = draw() % (draw() % 2 ? 300 : std::uint64_t{1} << 24);
    const std::vector<Share> shares = split(total, weights);
    ASSERT_EQ(shares.size(), weights.size());
    std::uint64_t next = 0;
    bool someone_is_lifted = false;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      ASSERT_EQ(shares[i].first, next);
      next += static_cast<std::uint64_t>(shares[i].count);
      someone_is_lifted = someone_is_lifted || total * weights[i] < sum;
      ASSERT_GE(shares[i].count, total >= weights.size() ? 1 : 0);
      for (std::size_t j = 0; j < i; ++j)
        ASSERT_TRUE(weights[i] <= weights[j] || shares[i].count >= shares[j].count) << "the heavier one has less";
    }
    ASSERT_EQ(next, total);
    for (std::size_t i = 0; i < shares.size() && !someone_is_lifted; ++i) {
      ASSERT_GE(static_cast<std::uint64_t>(shares[i].count), total * weights[i] / sum);
      ASSERT_LE(static_cast<std::uint64_t>(shares[i].count), total * weights[i] / sum + 1);
    }
  }
}

}  // namespace
}  // namespace tg::engine

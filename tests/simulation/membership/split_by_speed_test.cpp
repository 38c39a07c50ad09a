// Weights from what members have measured.
#include "daemon/membership/split_by_speed.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/dataset.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

using Weights = Per<Seat, std::uint16_t>;

struct Measured {
  double step_seconds = 0;
  std::uint32_t local_batch = 0;
};

Weights weights_of(const std::vector<Measured>& members, schema::Compute compute = schema::Compute::kTrain) {
  schema::JobSpec job;
  job.compute = compute;
  Per<Seat, schema::Vote> votes;
  for (const Measured& one : members) {
    schema::Vote vote;
    vote.accepted = true;
    vote.step_seconds = one.step_seconds;
    vote.local_batch = one.local_batch;
    votes.push_back(vote);
  }
  return weights_by_speed(job, votes);
}

TEST(SplitBySpeed, TheFastestHasTheGreatestWeightAndTheOthersAreInProportion) {
  EXPECT_EQ(weights_of({{0.1, 32}, {0.2, 32}}), (Weights{1000, 500}));
  EXPECT_EQ(weights_of({{0.2, 32}, {0.1, 32}, {0.3, 32}}), (Weights{500, 1000, 333}));
  EXPECT_EQ(weights_of({{0.7, 64}}), (Weights{1000}));
  EXPECT_EQ(weights_of({{0.7, 64}, {0.7, 64}, {0.7, 64}}), (Weights{1000, 1000, 1000}));
}

TEST(SplitBySpeed, SpeedIsPerSample) {
  EXPECT_EQ(weights_of({{0.3, 48}, {0.1, 16}}), (Weights{1000, 1000}));
  EXPECT_EQ(weights_of({{0.1, 16}, {0.1, 48}}), (Weights{333, 1000}));
}

TEST(SplitBySpeed, NoWeightIsBelowOne) {
  EXPECT_EQ(weights_of({{1e-6, 32}, {3600, 32}}), (Weights{1000, 1}));
  EXPECT_EQ(weights_of({{1, 10'000}, {1, 1}}), (Weights{1000, 1}));
  EXPECT_EQ(weights_of({{1e308, 1}, {1e-300, 1}}), (Weights{1, 1000}));
}

TEST(SplitBySpeed, AllAreEqualIfAMemberHasMeasuredNothing) {
  EXPECT_EQ(weights_of({{0.1, 32}, {0, 32}}), (Weights{1, 1}));
  EXPECT_EQ(weights_of({{0.1, 32}, {0.1, 0}, {0.3, 32}}), (Weights{1, 1, 1}));
  EXPECT_EQ(weights_of({{0.1, 32}, {5e-324, 32}}), (Weights{1, 1})) << "less than a number can say";
}

TEST(SplitBySpeed, GradientsThatAreReplayedTakeAsLongForAnyShare) {
  EXPECT_EQ(weights_of({{0.1, 32}, {0.2, 32}}, schema::Compute::kReplay), (Weights{1, 1}));
}

TEST(SplitBySpeed, AllMembersComputeForAboutTheSameTime) {
  const std::vector<Measured> members{{0.05, 16}, {0.08, 16}, {0.31, 16}, {0.013, 16}};
  const std::vector<engine::Share> shares = engine::split(512, weights_of(members));
  double least = 1e9, most = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const double seconds = members[i].step_seconds / members[i].local_batch * shares[i].count;
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  }
  EXPECT_LT(most, 1.05 * least);
}

}  // namespace
}  // namespace tg::daemon

// Who is named as a straggler, from what single members see; and how often the log says so.
#include "daemon/run/straggler.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/simulation/simulator/cluster.h"
#include "tests/simulation/simulator/random.h"
#include "tests/simulation/training/tiny_training.h"

namespace tg::daemon {
namespace {

using simulation::Random;

constexpr double kStepSeconds = 0.1;

WaitTimes times(std::vector<double> waited, std::vector<double> late, double seconds = 10) {
  return {seconds, static_cast<std::uint64_t>(seconds / kStepSeconds), std::move(waited), std::move(late)};
}

std::optional<Rank> named(const WaitTimes& times, Rank self) {
  const auto found = find_straggler(times, self);
  return found ? std::optional(found->rank) : std::nullopt;
}

TEST(Straggler, NobodyWhereTheWireIsWaitedFor) {
  for (const std::uint64_t seed : simulation::seeds(200)) {
    SCOPED_TRACE("TGD_SEED=" + std::to_string(seed));
    Random random(seed);
    const std::size_t members = random.between(2, 9);
    const Rank self = random.between(0, members - 1);
    WaitTimes all = times(std::vector<double>(members), std::vector<double>(members));
    // Nine tenths of the time, a third more or less for each.
    for (Rank r = 0; r < members; ++r) {
      if (r == self) continue;
      const double part = static_cast<double>(random.between(67, 133)) / 100;
      all.waited[r] = 9.0 * part / static_cast<double>(members);
    }
    EXPECT_EQ(named(all, self), std::nullopt);
  }
}

TEST(Straggler, AllOthersNameTheOneWhoComputesLonger) {
  const std::size_t members = 4;
  for (Rank self = 0; self < members; ++self) {
    WaitTimes all = times({0.5, 0.5, 0.5, 0.5}, {0, 0, 0, 0});
    all.waited[self] = 0;
    if (self == 2)
      all.late[2] = 3;  // the others wait for it
    else
      all.late[2] = all.waited[2] = 3;
    EXPECT_EQ(named(all, self), self == 2 ? std::nullopt : std::optional<Rank>(2)) << "node " << self;
  }
}

TEST(Straggler, LatenessShowsThroughTheWire) {
  EXPECT_EQ(named(times({0, 3, 3.2, 4.5}, {0, 0, 0.1, 1.5}), 0), std::optional<Rank>(3));
}

TEST(Straggler, ASlowLinkIsNamedByAllOthers) {
  EXPECT_EQ(named(times({0, 1.0, 1.2, 5}, {0, 0, 0, 0}), 0), std::optional<Rank>(3));
  EXPECT_EQ(named(times({1.0, 0, 1.2, 5}, {0, 0, 0, 0}), 1), std::optional<Rank>(3));
  EXPECT_EQ(named(times({3.0, 3.3, 3.1, 0}, {0, 0, 0, 0}), 3), std::nullopt) << "it waits for all alike";
}

TEST(Straggler, OfTwoOnlyTheFastOneNames) {
  EXPECT_EQ(named(times({0, 4}, {0, 3}), 0), std::optional<Rank>(1));
  EXPECT_EQ(named(times({0.3, 0}, {0.2, 3}), 1), std::nullopt) << "the slow one waits for the link";
  EXPECT_EQ(named(times({0, 9}, {0, 0.2}), 0), std::nullopt) << "the link, for both";
}

TEST(Straggler, TwoWhoseComputingVariesNameNobody) {
  EXPECT_EQ(named(times({0, 1.8}, {1.7, 1.8}), 0), std::nullopt);
  EXPECT_EQ(named(times({1.7, 0}, {1.7, 1.8}), 1), std::nullopt);
}

TEST(Straggler, ATripIsNoDelay) {
  WaitTimes fast = times({0, 2}, {0, 2});
  fast.steps = 10'000;  // of 1 ms
  EXPECT_EQ(named(fast, 0), std::nullopt);
  fast.steps = 1'000;
  EXPECT_EQ(named(fast, 0), std::optional<Rank>(1));
}

TEST(Straggler, OneNodeHasNone) {
  EXPECT_EQ(named(times({0}, {0}), 0), std::nullopt);
  EXPECT_EQ(named(times({0, 5}, {0, 5}, 0), 0), std::nullopt) << "no step yet";
}

// --- the watch ---

struct Watched {
  StragglerWatch watch{3, 0};
  std::size_t begun = 0, over = 0;

  // Steps of which `rank` holds up a share.
  void run(double seconds, Rank rank, double share) {
    for (double at = 0; at < seconds; at += kStepSeconds) {
      watch.waited({rank}, {rank}, share * kStepSeconds);
      const StragglerWatch::Change change = watch.committed(kStepSeconds);
      begun += change.begun.has_value();
      over += change.over.has_value();
    }
  }
};

TEST(StragglerWatch, SaysOnceThatItBeginsAndOnceThatItEnds) {
  Watched one;
  one.run(60, 1, 0.02);
  EXPECT_EQ(one.begun, 0u);
  one.run(600, 2, 0.4);
  EXPECT_EQ(one.begun, 1u);
  EXPECT_EQ(one.watch.named(), std::optional<Rank>(2));
  EXPECT_EQ(one.over, 0u);
  one.run(600, 2, 0.02);
  EXPECT_EQ(one.begun, 1u);
  EXPECT_EQ(one.over, 1u);
  EXPECT_EQ(one.watch.named(), std::nullopt);
}

// The worse of them changes from span to span.
TEST(StragglerWatch, OfTwoSlowOnesOneIsNamedAndStays) {
  for (const std::size_t members : {4u, 5u, 8u}) {
    StragglerWatch watch(members, 0);
    std::size_t begun = 0, over = 0;
    for (int step = 0; step < 4000; ++step) {
      const bool first = step / 100 % 2 == 0;
      watch.waited({2}, {2}, first ? 0.030 : 0.031);
      watch.waited({3}, {3}, first ? 0.031 : 0.030);
      const StragglerWatch::Change change = watch.committed(kStepSeconds);
      begun += change.begun ? 1 : 0;
      over += change.over ? 1 : 0;
    }
    EXPECT_EQ(begun, 1u) << members;
    EXPECT_EQ(over, 0u) << members;
  }
}

TEST(StragglerWatch, AMomentIsNotEnough) {
  Watched one;
  for (int i = 0; i < 60; ++i) {
    one.run(StragglerWatch::kLeastSeconds, 1, 0);
    one.run(0.4, 1, 1);
  }
  EXPECT_EQ(one.begun, 0u);
}

TEST(StragglerWatch, AroundTheThresholdItSaysNothingNew) {
  Watched one;
  one.run(60, 1, 0.12);
  for (int i = 0; i < 60; ++i) {
    one.run(10, 1, 0.08);
    one.run(10, 1, 0.12);
  }
  EXPECT_EQ(one.begun, 1u);
  EXPECT_EQ(one.over, 0u);
}

TEST(StragglerWatch, SentencesAreBoundedWhateverHappens) {
  for (const std::uint64_t seed : simulation::seeds(20)) {
    SCOPED_TRACE("TGD_SEED=" + std::to_string(seed));
    Random random(seed);
    Watched one;
    double seconds = 0;
    while (seconds < 20'000) {
      const double part = static_cast<double>(random.between(1, 400)) / 10;
      one.run(part, random.between(1, 2), random.one_in(2) ? 0.5 : 0);
      seconds += part + kStepSeconds;
    }
    EXPECT_GT(one.begun, 0u);
    EXPECT_LE(static_cast<double>(one.begun + one.over),
              2 * std::log2(1 + seconds / StragglerWatch::kLeastSeconds) + 1);
  }
}

TEST(StragglerWatch, JudgesASpanOfEnoughSteps) {
  StragglerWatch watch(2, 0);
  watch.waited({1}, {1}, 100);
  for (std::uint64_t step = 1; step < StragglerWatch::kLeastSteps; ++step) EXPECT_FALSE(watch.committed(60).begun);
  const auto change = watch.committed(60);
  ASSERT_TRUE(change.begun);
  EXPECT_EQ(change.begun->rank, 1u);
  EXPECT_NEAR(change.begun->share, 100.0 / 240, 1e-9);
}

}  // namespace
}  // namespace tg::daemon

#include "daemon/mesh/probe/round_trips.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tg::daemon {
namespace {

TEST(RoundTrips, EveryPeerInTurnAndTheMedian) {
  RoundTrips trips(3, Seat(1));
  double now = 0;
  auto shot = trips.start(now);
  ASSERT_TRUE(shot.has_value());
  EXPECT_FALSE(trips.start(now).has_value()) << "begun already";
  std::vector<int> shots(3);
  for (int i = 0; shot; ++i) {
    ++shots[shot->peer.index()];
    now += i == 0 ? 0.1 : 0.001;  // the first one meets a cold mesh
    EXPECT_FALSE(trips.replied(Seat(1 - shot->peer.index() % 2), shot->number, now).has_value())
        << "another peer's answer";
    EXPECT_FALSE(trips.replied(shot->peer, shot->number - 1, now).has_value()) << "an answer to an earlier shot";
    shot = trips.replied(shot->peer, shot->number, now);
  }
  EXPECT_TRUE(trips.over() && trips.complete());
  EXPECT_EQ(shots, (std::vector<int>{10, 0, 10}));
  EXPECT_NEAR(trips.median_seconds(), 0.001, 1e-9);
}

TEST(RoundTrips, ManyPeersAreAllMet) {
  RoundTrips trips(50, Seat(0));
  auto shot = trips.start(0);
  std::vector<bool> met(50);
  for (double now = 0; shot; now += 0.001) {
    met[shot->peer.index()] = true;
    shot = trips.replied(shot->peer, shot->number, now);
  }
  EXPECT_EQ(std::count(met.begin(), met.end(), true), 49);
}

TEST(RoundTrips, ALostShotIsSentAgainAndASilentPeerEndsIt) {
  RoundTrips trips(2, Seat(0));
  auto shot = trips.start(0);
  EXPECT_FALSE(trips.tick(0.2).has_value());
  const auto again = trips.tick(0.3);
  ASSERT_TRUE(again.has_value());
  EXPECT_NE(again->number, shot->number);
  shot = trips.replied(Seat(1), again->number, 0.31);
  ASSERT_TRUE(shot.has_value());
  double now = 0.31;
  for (int i = 0; i < 100 && !trips.over(); ++i) (void)trips.tick(now += 0.1);
  EXPECT_TRUE(trips.over());
  EXPECT_FALSE(trips.complete());
  EXPECT_LT(now, 3);
}

TEST(RoundTrips, OneAloneHasNone) {
  RoundTrips trips(1, Seat(0));
  EXPECT_TRUE(trips.over());
  EXPECT_FALSE(trips.complete());
  EXPECT_FALSE(trips.start(0).has_value());
  EXPECT_EQ(trips.median_seconds(), 0);
}

}  // namespace
}  // namespace tg::daemon

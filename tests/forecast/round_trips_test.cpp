#include "daemon/mesh/probe/round_trips.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tg::daemon {
namespace {

TEST(RoundTrips, EveryPeerInTurnAndTheMedian) {
  RoundTrips trips(3, Seat(1));
  double now = 0;
  auto ping = trips.start(now);
  ASSERT_TRUE(ping.has_value());
  EXPECT_FALSE(trips.start(now).has_value()) << "begun already";
  std::vector<int> shots(3);
  for (int i = 0; ping; ++i) {
    ++shots[ping->peer.index()];
    now += i == 0 ? 0.1 : 0.001;  // the first one meets a cold mesh
    EXPECT_FALSE(trips.on_reply(Seat(1 - ping->peer.index() % 2), ping->number, now).has_value())
        << "another peer's answer";
    EXPECT_FALSE(trips.on_reply(ping->peer, ping->number - 1, now).has_value()) << "an answer to an earlier shot";
    ping = trips.on_reply(ping->peer, ping->number, now);
  }
  EXPECT_TRUE(trips.is_done() && trips.is_complete());
  EXPECT_EQ(shots, (std::vector<int>{10, 0, 10}));
  EXPECT_NEAR(trips.median_seconds(), 0.001, 1e-9);
}

TEST(RoundTrips, ManyPeersAreAllMet) {
  RoundTrips trips(50, Seat(0));
  auto ping = trips.start(0);
  std::vector<bool> met(50);
  for (double now = 0; ping; now += 0.001) {
    met[ping->peer.index()] = true;
    ping = trips.on_reply(ping->peer, ping->number, now);
  }
  EXPECT_EQ(std::count(met.begin(), met.end(), true), 49);
}

TEST(RoundTrips, ALostShotIsSentAgainAndASilentPeerEndsIt) {
  RoundTrips trips(2, Seat(0));
  auto ping = trips.start(0);
  EXPECT_FALSE(trips.tick(0.2).has_value());
  const auto again = trips.tick(0.3);
  ASSERT_TRUE(again.has_value());
  EXPECT_NE(again->number, ping->number);
  ping = trips.on_reply(Seat(1), again->number, 0.31);
  ASSERT_TRUE(ping.has_value());
  double now = 0.31;
  for (int i = 0; i < 100 && !trips.is_done(); ++i) (void)trips.tick(now += 0.1);
  EXPECT_TRUE(trips.is_done());
  EXPECT_FALSE(trips.is_complete());
  EXPECT_LT(now, 3);
}

TEST(RoundTrips, OneAloneHasNone) {
  RoundTrips trips(1, Seat(0));
  EXPECT_TRUE(trips.is_done());
  EXPECT_FALSE(trips.is_complete());
  EXPECT_FALSE(trips.start(0).has_value());
  EXPECT_EQ(trips.median_seconds(), 0);
}

}  // namespace
}  // namespace tg::daemon

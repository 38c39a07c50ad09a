#include "daemon/mesh/probe/link_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "daemon/mesh/probe/burst_meter.h"
#include "schema/limits.h"

namespace tg::daemon {
namespace {

std::uint64_t micros_at(double mbps, std::size_t bytes) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * 8 / mbps);
}
std::size_t timed_bytes(const LinkProbe::Burst& burst) {
  return (burst.frames_per_peer - 1) * burst.peers.size() * burst.frame_bytes;
}

TEST(LinkProbe, ASlowLinkIsMeasuredAtOnce) {
  LinkProbe probe(2, Seat(0));
  const auto burst = probe.start(0);
  ASSERT_TRUE(burst.has_value());
  EXPECT_EQ(burst->peers, std::vector<Seat>{Seat(1)});
  EXPECT_FALSE(probe.start(0).has_value()) << "begun already";
  EXPECT_FALSE(probe.on_reply(Seat(1), {burst->number, micros_at(2, timed_bytes(*burst))}, 1).has_value());
  EXPECT_TRUE(probe.is_done());
  EXPECT_NEAR(probe.mbps(), 2, 0.01);
}

struct Bursts {
  std::size_t count = 0;
  double longest = 0, last = 0;  // seconds
};
// All at this rate, by one peer.
Bursts bursts_at(LinkProbe& probe, double mbps) {
  Bursts bursts;
  double now = 0;
  for (auto burst = probe.start(now); burst;) {
    const std::uint64_t took = micros_at(mbps, timed_bytes(*burst));
    bursts.last = 1e-6 * static_cast<double>(took);
    bursts.longest = std::max(bursts.longest, bursts.last);
    ++bursts.count;
    now += bursts.last;
    burst = probe.on_reply(Seat(1), {burst->number, took}, now);
  }
  return bursts;
}

TEST(LinkProbe, NoBurstIsLongAndTheLastOneIsNotShort) {
  for (const auto& [mbps, count] :
       std::vector<std::pair<double, std::size_t>>{{1, 1}, {6, 1}, {7, 2}, {100, 2}, {500, 2}, {941, 4}, {4000, 4}}) {
    LinkProbe probe(2, Seat(0));
    const Bursts bursts = bursts_at(probe, mbps);
    EXPECT_EQ(bursts.count, count) << mbps;
    EXPECT_LT(2 * bursts.longest, LinkProbe::kTimeoutSeconds) << mbps << ": with a peer's own burst before the answer";
    EXPECT_GT(bursts.last, 0.03) << mbps;
    EXPECT_TRUE(probe.is_done());
    EXPECT_NEAR(probe.mbps(), mbps, 0.001 * mbps);
  }
}

TEST(LinkProbe, AFastLinkWantsLargerBurstsAndTheBestCounts) {
  LinkProbe probe(3, Seat(1));
  const auto small = probe.start(0);
  EXPECT_EQ(small->peers, (std::vector<Seat>{Seat(2), Seat(0)}));
  probe.on_reply(Seat(0), {small->number, 100}, 0.005);
  const auto first = probe.on_reply(Seat(2), {small->number, 100}, 0.005);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(probe.on_reply(Seat(0), {first->number, 900}, 0.01).has_value());
  EXPECT_FALSE(probe.on_reply(Seat(0), {first->number, 900}, 0.01).has_value()) << "one peer twice is not two peers";
  const auto second = probe.on_reply(Seat(2), {first->number, 1100}, 0.01);
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(second->frames_per_peer, first->frames_per_peer);
  EXPECT_FALSE(probe.on_reply(Seat(0), {first->number, 1}, 0.02).has_value()) << "late news of the first burst";
  const std::uint64_t slowest = micros_at(941, timed_bytes(*second));
  EXPECT_FALSE(probe.on_reply(Seat(0), {second->number, slowest / 2}, 0.1).has_value());
  EXPECT_FALSE(probe.is_done());
  const auto third = probe.on_reply(Seat(2), {second->number, slowest}, 0.25);
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->frames_per_peer, second->frames_per_peer);
  EXPECT_FALSE(probe.on_reply(Seat(0), {third->number, 2 * slowest}, 0.55).has_value());
  EXPECT_FALSE(probe.on_reply(Seat(2), {third->number, slowest}, 0.6).has_value());
  EXPECT_TRUE(probe.is_done());
  EXPECT_NEAR(probe.mbps(), 941, 0.1) << "the slowest peer counts";
}

// Two nodes that measure at once: the answer to the one's small burst comes behind the other's large one.
TEST(LinkProbe, WhatAnAnswerWaitsForIsNotTheLinks) {
  LinkProbe probe(2, Seat(0));
  const auto burst = probe.start(0);
  const std::uint64_t took = micros_at(941, timed_bytes(*burst));
  const auto larger = probe.on_reply(Seat(1), {burst->number, took}, 0.5);
  ASSERT_TRUE(larger.has_value()) << "2 ms are short, although the answer took 500";
  EXPECT_NEAR(probe.mbps(), 941, 1);
}

TEST(LinkProbe, ManyPeersStillGetFramesToTime) {
  LinkProbe probe(127, Seat(5));
  const auto burst = probe.start(0);
  EXPECT_EQ(burst->peers.size(), 126U);
  EXPECT_EQ(burst->frames_per_peer, LinkProbe::kMinFrames);
  EXPECT_LE(burst->frames_per_peer * burst->frame_bytes * 126, LinkProbe::kBursts[0].bytes);
}

// A peer that lies, or whose clock is wrong, can claim no longer time than we have waited.
TEST(LinkProbe, OddTimesAreBounded) {
  LinkProbe slow(2, Seat(0));
  const auto burst = slow.start(10);
  slow.on_reply(Seat(1), {burst->number, UINT64_MAX}, 10.5);
  EXPECT_TRUE(slow.is_done());
  EXPECT_NEAR(slow.mbps(), static_cast<double>(timed_bytes(*burst)) * 8e-6 / 0.5, 0.05);
  LinkProbe fast(2, Seat(0));
  auto next = fast.start(10);
  while (next) next = fast.on_reply(Seat(1), {next->number, 0}, 10.5);
  EXPECT_TRUE(fast.is_done());
  EXPECT_EQ(fast.mbps(), schema::kMaxLineMbps);
}

// A shaper's bucket may let smaller bursts through at once.
TEST(LinkProbe, ABurstThatDoesNotArriveSaysThatTheLinkIsSlow) {
  for (std::uint32_t silent = 2; silent <= std::size(LinkProbe::kBursts); ++silent) {
    LinkProbe probe(2, Seat(0));
    auto burst = probe.start(0);
    while (burst->number < silent) {
      burst = probe.on_reply(Seat(1), {burst->number, 10'000}, 0.01);
      ASSERT_TRUE(burst.has_value()) << silent;
    }
    const double before = probe.mbps();
    probe.tick(0.02 + LinkProbe::kTimeoutSeconds);
    EXPECT_TRUE(probe.is_done());
    const double most = static_cast<double>(timed_bytes(*burst)) * 8e-6 / LinkProbe::kTimeoutSeconds;
    const bool last = silent == std::size(LinkProbe::kBursts);
    EXPECT_EQ(probe.mbps(), last ? before : most) << silent << ": one as large as the last has come in";
    EXPECT_GT(before, most);
  }
}

TEST(LinkProbe, SilenceEndsIt) {
  LinkProbe probe(2, Seat(0));
  probe.start(10);
  probe.tick(10 + LinkProbe::kTimeoutSeconds / 2);
  EXPECT_FALSE(probe.is_done());
  probe.tick(10.1 + LinkProbe::kTimeoutSeconds);
  EXPECT_TRUE(probe.is_done());
  EXPECT_EQ(probe.mbps(), 0) << "nobody has answered: nothing is known";
}

TEST(LinkProbe, WhoDoesNotAnswerIsBehindASlowLink) {
  LinkProbe probe(3, Seat(0));
  const auto burst = probe.start(0);
  probe.on_reply(Seat(1), {burst->number, 100}, 0.01);
  probe.tick(0.1 + LinkProbe::kTimeoutSeconds);
  EXPECT_TRUE(probe.is_done());
  EXPECT_NEAR(probe.mbps(), static_cast<double>(timed_bytes(*burst)) * 8e-6 / LinkProbe::kTimeoutSeconds, 1e-9);
}

TEST(LinkProbe, AloneThereIsNoLink) {
  LinkProbe probe(1, Seat(0));
  EXPECT_TRUE(probe.is_done());
  EXPECT_FALSE(probe.start(0).has_value());
}

TEST(BurstMeter, FromTheFirstFrameToTheLast) {
  BurstMeter meter(3);
  EXPECT_FALSE(meter.on_frame(Seat(1), {7, 1, false}, 1000).has_value());
  EXPECT_FALSE(meter.on_frame(Seat(2), {7, 1, false}, 1500).has_value()) << "another peer's burst";
  EXPECT_FALSE(meter.on_frame(Seat(1), {7, 1, false}, 2000).has_value());
  EXPECT_EQ(meter.on_frame(Seat(1), {7, 1, true}, 4000), 3000U);
  EXPECT_EQ(meter.on_frame(Seat(2), {7, 1, true}, 4500), 3000U);
}

TEST(BurstMeter, ABurstBelongsToItsRunAndNumber) {
  BurstMeter meter(2);
  meter.on_frame(Seat(1), {7, 1, false}, 1000);
  meter.on_frame(Seat(1), {8, 1, false}, 5000);  // the first one's rest never came
  EXPECT_EQ(meter.on_frame(Seat(1), {8, 1, true}, 5500), 500U);
  EXPECT_EQ(meter.on_frame(Seat(1), {8, 1, true}, 9000), 0U) << "one of a single frame";
  EXPECT_FALSE(meter.on_frame(Seat(9), {8, 1, true}, 9000).has_value()) << "nobody";
}

}  // namespace
}  // namespace tg::daemon

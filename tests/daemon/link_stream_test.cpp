// A link's rate is found within some per cent whatever the link: the stream against a simulated one.
#include "daemon/doctor/link_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <utility>

namespace tg::daemon {
namespace {

// Frames leave one after the other at the link's rate; the answer comes half a trip later.
struct Line {
  double bytes_per_second = 0, trip = 0;
  double free_at = 0;
  std::deque<std::pair<double, std::uint32_t>> answers = {};
  std::size_t most = 0;
  void take(const LinkStream::Frames& frames, double now) {
    for (std::uint32_t i = 0; i < frames.count; ++i) {
      free_at = std::max(free_at, now) + static_cast<double>(LinkStream::kFrameBytes) / bytes_per_second;
      answers.emplace_back(free_at + trip, frames.first + i);
    }
    most = std::max(most, answers.size());
  }
};

double measured(double mbps, double trip, double* until = nullptr, std::size_t* most = nullptr) {
  Line line{mbps * 1e6 / 8, trip};
  LinkStream stream;
  double now = 0;
  line.take(stream.begin(now, 3), now);
  while (!line.answers.empty()) {
    const auto [at, number] = line.answers.front();
    line.answers.pop_front();
    now = at;
    line.take(stream.acknowledged(number, now), now);
  }
  if (until != nullptr) *until = now;
  if (most != nullptr) *most = line.most;
  return stream.mbps();
}

TEST(LinkStream, FindsTheRateOfAnyEthernet) {
  for (const double mbps : {1.0, 10.0, 94.0, 941.0, 9400.0})
    for (const double trip : {50e-6, 200e-6, 2e-3}) {
      SCOPED_TRACE(testing::Message() << mbps << " Mbit/s, " << trip << " s");
      double until = 0;
      std::size_t most = 0;
      // 64 frames of 64 KiB in 2 ms are 16 Gbit/s, so the window is no limit; the first frames ramp up.
      EXPECT_NEAR(measured(mbps, trip, &until, &most), mbps, 0.05 * mbps);
      EXPECT_LT(until, 3 + 1.2);  // two frames at 1 Mbit/s
      EXPECT_LE(most, LinkStream::kMaxFrames);
    }
}

TEST(LinkStream, ASlowLinkHasFewFramesUnderWay) {
  std::size_t most = 0;
  double until = 0;
  measured(10, 1e-3, &until, &most);
  EXPECT_LE(most, 3u);
  EXPECT_LT(until, 3.3);  // what was in flight has come soon after the end
}

// A peer that answers at once until the window is as wide as it gets, says twice what it says, and then nothing more.
TEST(LinkStream, FramesInFlightAreBoundedWhateverThePeerSays) {
  LinkStream stream;
  LinkStream::Frames sent = stream.begin(0, 3);
  std::uint64_t in_flight = sent.count, most = in_flight;
  double now = 0;
  std::uint32_t next = sent.first;
  for (std::uint64_t answers = 0; answers < 4 * LinkStream::kMaxFrames; ++answers) {
    now += 1e-6;
    in_flight += stream.acknowledged(next, now).count;
    --in_flight;
    in_flight += stream.acknowledged(next, now).count + stream.acknowledged(next + 1'000'000, now).count;
    ++next;
    most = std::max(most, in_flight);
  }
  EXPECT_EQ(most, LinkStream::kMaxFrames);
}

TEST(LinkStream, WhatItDidNotSendIsNoAnswer) {
  LinkStream stream;
  const LinkStream::Frames first = stream.begin(0, 3);
  EXPECT_EQ(first.count, LinkStream::kMinFrames);
  EXPECT_EQ(stream.acknowledged(99, 0.001).count, 0u);
  EXPECT_EQ(stream.mbps(), 0);
  EXPECT_GT(stream.acknowledged(first.first, 0.001).count, 0u);
  EXPECT_EQ(stream.acknowledged(first.first, 0.001).count, 0u);  // told twice
  EXPECT_GT(stream.mbps(), 0);
  EXPECT_EQ(stream.acknowledged(first.first + 1, 3.1).count, 0u);  // after the end
}

}  // namespace
}  // namespace tg::daemon

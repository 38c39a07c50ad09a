// The deadlines of liveness, and the sentences that people read.
#include "daemon/membership/liveness.h"

#include <gtest/gtest.h>

namespace tg::daemon {
namespace {

using schema::Heartbeat;
using schema::Phase;

constexpr Seat kA{0}, kB{1}, kC{2};

class LivenessTest : public testing::Test {
 protected:
  LivenessTest() { liveness_.watch("run-1", 60'000, 0); }

  // Ticks every 100 ms from now_ms_ to `until`, with what `each` feeds before each tick. Returns the verdicts, a line
  // for each: the member that it suspects, and its sentence.
  template <class Each>
  std::string run(std::uint64_t until_ms, Each each) {
    std::string lines;
    for (; now_ms_ <= until_ms; now_ms_ += 100) {
      each();
      for (const Suspicion& verdict : liveness_.tick(now_ms_))
        lines += (lines.empty() ? "" : "\n") + std::string{static_cast<char>('a' + verdict.seat.index())} + ": " +
                 verdict.message;
    }
    return lines;
  }
  void beat(Seat seat, Phase phase, std::uint64_t progress, const std::string& run = "run-1") {
    liveness_.on_heartbeat(seat, Heartbeat{"", 1, run, phase, 12, progress}, now_ms_);
  }

  Liveness liveness_{{{"node-a", "node-b", "node-c"}, kA, 10'000}};
  std::uint64_t now_ms_ = 0;
};

TEST_F(LivenessTest, SilenceIsReportedOnceAfterThePeerTimeout) {
  const auto verdicts = run(60'000, [&] {
    beat(kA, Phase::kForward, now_ms_);
    beat(kB, Phase::kForward, now_ms_);
    if (now_ms_ <= 5'000) beat(kC, Phase::kBackward, now_ms_);
  });
  EXPECT_EQ(verdicts, "c: no sign of life from node-c for 10 s (its last heartbeat said backward of step 12)");
}

TEST_F(LivenessTest, SilenceIsNoticedNeitherEarlyNorLate) {
  const auto feed = [&] {
    beat(kB, Phase::kForward, now_ms_);
    if (now_ms_ <= 5'000) beat(kC, Phase::kBackward, now_ms_);
  };
  EXPECT_EQ(run(14'900, feed), "");
  EXPECT_EQ(run(15'000, feed), "c: no sign of life from node-c for 10 s (its last heartbeat said backward of step 12)");
}

TEST_F(LivenessTest, ANodeNeverSeenSaysSo) {
  const auto verdicts = run(10'000, [&] { beat(kB, Phase::kForward, now_ms_); });
  EXPECT_EQ(verdicts, "c: no sign of life from node-c for 10 s (no heartbeat since the run began)");
}

TEST_F(LivenessTest, DataCountAsLifeAfterRecentHeartbeats) {
  const auto verdicts = run(30'000, [&] {
    for (const Seat seat : {kB, kC}) liveness_.on_data(seat, now_ms_);
    if (now_ms_ % 9'000 == 0)
      for (const Seat seat : {kB, kC}) beat(seat, Phase::kForward, now_ms_);
  });
  EXPECT_EQ(verdicts, "");
}

TEST_F(LivenessTest, ALongEvaluationWithProgressIsNotSuspected) {
  const auto verdicts = run(600'000, [&] {
    for (const Seat seat : {kA, kB, kC}) beat(seat, Phase::kEvaluate, now_ms_ / 30'000);
  });
  EXPECT_EQ(verdicts, "");
}

TEST_F(LivenessTest, AMemberWithoutProgressIsSuspectedBeforeThoseThatWait) {
  const auto verdicts = run(100'000, [&] {
    beat(kA, Phase::kScalerWait, 5);
    beat(kB, Phase::kScalerWait, 5);
    beat(kC, Phase::kBackward, 4);
  });
  EXPECT_EQ(verdicts, "c: node-c is stuck in backward of step 12 for 60 s");
}

TEST_F(LivenessTest, TheOwnComputeIsWatchedToo) {
  const auto verdicts = run(60'000, [&] {
    beat(kA, Phase::kForward, 5);
    beat(kB, Phase::kScalerWait, 5);
    beat(kC, Phase::kScalerWait, 5);
  });
  EXPECT_EQ(verdicts, "a: node-a is stuck in forward of step 12 for 60 s");
}

TEST_F(LivenessTest, WaitingForEverHasADeadlineToo) {
  const auto verdicts = run(120'000, [&] {
    beat(kB, Phase::kReduce, 5);
    beat(kC, Phase::kForward, now_ms_);
  });
  EXPECT_EQ(verdicts, "b: node-b received nothing in reduce of step 12 for 120 s");
}

TEST_F(LivenessTest, TheStepTimeoutMayGrow) {
  liveness_.set_step_timeout(200'000);
  const auto feed = [&] {
    beat(kB, Phase::kForward, now_ms_);
    beat(kC, Phase::kForward, 5);
  };
  EXPECT_EQ(run(199'900, feed), "");
  EXPECT_EQ(run(200'000, feed), "c: node-c is stuck in forward of step 12 for 200 s");
}

TEST_F(LivenessTest, PreparationIsNotStuck) {
  const auto verdicts = run(250'000, [&] {
    beat(kB, Phase::kPrepare, 5);
    beat(kC, Phase::kForward, now_ms_);
  });
  EXPECT_EQ(verdicts, "");
}

TEST_F(LivenessTest, DataAfterTheLastBeatDoesNotMakeADeadNodeUp) {
  const auto verdicts = run(20'000, [&] {
    beat(kB, Phase::kForward, now_ms_);
    if (now_ms_ < 5'000) beat(kC, Phase::kForward, now_ms_);
    if (now_ms_ < 5'200) liveness_.on_data(kC, now_ms_);
  });
  EXPECT_EQ(verdicts, "c: no sign of life from node-c for 10 s (its last heartbeat said forward of step 12)");
}

TEST_F(LivenessTest, ARestartedNodeIsUpButNotInTheRun) {
  const auto verdicts = run(20'000, [&] {
    beat(kB, Phase::kForward, now_ms_);
    beat(kC, Phase::kIdle, 0, now_ms_ < 5'000 ? "run-1" : "");
  });
  EXPECT_EQ(verdicts, "c: node-c is up, but not in run run-1; was it restarted?");
}

// Its control port was bound anew, say: data arrive, and heartbeats do not for a moment.
TEST_F(LivenessTest, LateHeartbeatsWithDataAreNotSuspected) {
  const auto feed = [&](std::uint64_t silent_until) {
    return [this, silent_until] {
      beat(kB, Phase::kForward, now_ms_);
      liveness_.on_data(kC, now_ms_);
      if (now_ms_ < 5'000 || now_ms_ >= silent_until) beat(kC, Phase::kForward, now_ms_);
    };
  };
  EXPECT_EQ(run(60'000, feed(34'000)), "");
}

TEST_F(LivenessTest, DataWithoutHeartbeatsAreNotEnoughForEver) {
  const auto verdicts = run(60'000, [&] {
    beat(kB, Phase::kForward, now_ms_);
    liveness_.on_data(kC, now_ms_);
    if (now_ms_ < 5'000) beat(kC, Phase::kForward, now_ms_);
  });
  EXPECT_EQ(verdicts, "c: node-c is up, but sent no heartbeat for 30 s; does it reach the control port of node-a?");
}

TEST_F(LivenessTest, ANodeThatSleptSuspectsNoPeer) {
  const auto feed = [&] {
    for (const Seat seat : {kA, kB, kC}) beat(seat, Phase::kForward, now_ms_);
  };
  run(5'000, feed);
  now_ms_ += 300'000;
  EXPECT_TRUE(liveness_.tick(now_ms_).empty());
  const std::uint64_t awake_ms = now_ms_;
  EXPECT_EQ(run(awake_ms + 9'000, [] {}), "");
  EXPECT_EQ(run(awake_ms + 11'000, [] {}),
            "b: no sign of life from node-b for 10 s (its last heartbeat said forward of step 12)\n"
            "c: no sign of life from node-c for 10 s (its last heartbeat said forward of step 12)");
}

TEST_F(LivenessTest, DataAfterASleepDoNotDelayASuspicion) {
  run(1'000, [&] { beat(kB, Phase::kForward, 1); });
  now_ms_ += 100'000;
  beat(kC, Phase::kForward, 1);
  EXPECT_TRUE(liveness_.tick(now_ms_).empty());
  const std::uint64_t awake_ms = now_ms_;
  const auto verdicts = run(awake_ms + 10'000, [&] { beat(kB, Phase::kForward, now_ms_); });
  EXPECT_EQ(verdicts, "c: no sign of life from node-c for 10 s (its last heartbeat said forward of step 12)");
}

TEST_F(LivenessTest, NoNodeIsSuspectedWithoutARun) {
  liveness_.unwatch();
  EXPECT_EQ(run(100'000, [] {}), "");
  liveness_.watch("run-2", 60'000, now_ms_);
  EXPECT_EQ(run(now_ms_ + 9'000, [] {}), "");
  EXPECT_EQ(run(now_ms_ + 2'000, [] {}),
            "b: no sign of life from node-b for 10 s (no heartbeat since the run began)\n"
            "c: no sign of life from node-c for 10 s (no heartbeat since the run began)");
}

TEST_F(LivenessTest, StatusShowsHowLongAPhaseMayTake) {
  const auto shown = [&](Seat seat) {
    const auto time = liveness_.phase_time(seat, now_ms_);
    return time ? std::string(to_word(time->phase)) + " " + std::to_string(time->ms) + " of " +
                      std::to_string(time->limit_ms)
                : "nothing";
  };
  EXPECT_EQ(shown(kB), "nothing") << "no beat yet";
  run(4'900, [&] {
    beat(kA, Phase::kPrepare, now_ms_);
    beat(kB, Phase::kBackward, 4);
    beat(kC, Phase::kReduce, 5);
  });
  now_ms_ = 12'000;
  EXPECT_EQ(shown(kA), "prepare 7100 of 300000");
  EXPECT_EQ(shown(kB), "backward 12000 of 60000");
  EXPECT_EQ(shown(kC), "reduce 12000 of 90000");
  liveness_.set_step_timeout(200'000);
  beat(kB, Phase::kGather, 4);
  EXPECT_EQ(shown(kB), "gather 0 of 300000") << "each phase has its own time";
  liveness_.unwatch();
  EXPECT_EQ(shown(kB), "nothing");
}

TEST_F(LivenessTest, ProgressInPreparingIsReported) {
  beat(kB, Phase::kPrepare, 1);
  beat(kC, Phase::kForward, 1);
  EXPECT_EQ(liveness_.take_prepare_progress(), std::vector<Seat>{kB});
  EXPECT_TRUE(liveness_.take_prepare_progress().empty());
  beat(kB, Phase::kPrepare, 1);
  EXPECT_TRUE(liveness_.take_prepare_progress().empty()) << "no progress";
  beat(kA, Phase::kPrepare, 7);
  beat(kB, Phase::kPrepare, 2);
  EXPECT_EQ(liveness_.take_prepare_progress(), (std::vector<Seat>{kA, kB}));
  beat(kB, Phase::kPrepare, 3, "another-run");
  EXPECT_TRUE(liveness_.take_prepare_progress().empty());
}

TEST_F(LivenessTest, AliveForStatusNeedsNoRun) {
  Liveness liveness({{"node-a", "node-b"}, kA, 10'000});
  EXPECT_TRUE(liveness.is_alive(kA, 0));
  EXPECT_FALSE(liveness.is_alive(kB, 0));
  liveness.on_data(kB, 1'000);
  EXPECT_TRUE(liveness.is_alive(kB, 3'900));
  EXPECT_FALSE(liveness.is_alive(kB, 4'000));
  liveness.watch("run", 1, 4'000);
  EXPECT_FALSE(liveness.is_alive(kB, 4'000));
}

}  // namespace
}  // namespace tg::daemon

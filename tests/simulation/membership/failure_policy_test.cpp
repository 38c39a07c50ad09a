// Every row of the table of causes: how a run ends of it, at a member that has begun.
#include "daemon/membership/failure_policy.h"

#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Fail;
using schema::RunState;

// What a running member of three does when this happens to it; node-a is the most senior.
std::string happens(FailureCause cause) {
  Machine b = running_member();
  switch (cause) {
    case FailureCause::kAllReported:
      return b.finishes(RunState::kCompleted, "");
    case FailureCause::kStopRequested:
      EXPECT_EQ(b.stops(), "ask to stop");
      EXPECT_EQ(b.stopping(), "");
      return b.finishes(RunState::kStopped, "");
    case FailureCause::kTrainingFailure:
      return b.fails({ErrorKind::kRunFailed, "node-c", "backward", "the gradient of fc.weight on node-c is NaN"});
    case FailureCause::kNoEligibleMember: {
      Machine a = running(kA, 2);
      a.fails({ErrorKind::kIo, "node-a", "data", "node-a cannot read /data"});
      schema::Promise unfit = promise(kB, ballot(1, kA));
      unfit.unfit = "node-b cannot read /data";
      return a.receives(kB, unfit);
    }
    case FailureCause::kLocalError: {
      Machine stuck = b;
      EXPECT_EQ(stuck.loses(kB, "node-b is stuck"), "suspect b to a c: node-b is stuck");
      return b.fails({ErrorKind::kIo, "node-b", "data", "node-b cannot read /data"});
    }
    case FailureCause::kPeerFailure: {
      Machine told = b;
      EXPECT_EQ(told.receives(kC, an_end(RunState::kFailed, 1, "why")), "save run-1: FAILED: why");
      return b.receives(kA, Fail{ErrorKind::kRunFailed, "node-c", "", "why"});
    }
    case FailureCause::kConnectionLost:
      return b.disconnects(kC);
    case FailureCause::kPeerTimeout:
      return b.loses(kC, "no sign of life from node-c for 10 s");
    case FailureCause::kPeerInterrupted:
      return b.receives(kC, an_end(RunState::kInterrupted, 1, "node-c was shut down"));
    case FailureCause::kPeerShutdown:
      return b.receives(kC, schema::Goodbye{"node-c was shut down"});
    case FailureCause::kLocalShutdown:
      b.disconnects(kA);
      b.disconnects(kC);
      return b.shuts_down();
    case FailureCause::kEvicted:
      return b.receives(kA, schema::Decide{next_view({kA, kC})});
    case FailureCause::kStopWhilePaused:
      b.disconnects(kA);
      b.disconnects(kC);
      return b.stops();
    case FailureCause::kLeaveRequested:
      b.leaves();
      b.is_quiesced();
      return b.receives(kA, schema::Decide{next_view({kA, kC})});
    case FailureCause::kNonMemberLost:
      b.receives(kA, schema::Decide{next_view({kA, kB})});
      EXPECT_EQ(b.receives(kC, an_end(RunState::kInterrupted, 1, "node-c was evicted"), kKey, 2), "");
      EXPECT_EQ(b.receives(kC, an_end(RunState::kFailed, 1, "something"), kKey, 2), "");
      EXPECT_EQ(b.receives(kC, Fail{ErrorKind::kRunFailed, "node-c", "", "why"}, kKey, 2), "");
      EXPECT_EQ(b.loses(kC, "no sign of life from node-c for 10 s"), "");
      return b.disconnects(kC);
    case FailureCause::kFinishedMemberLost:
      EXPECT_EQ(b.finished(kC), "");
      EXPECT_EQ(b.receives(kC, schema::Goodbye{"node-c was shut down"}), "");
      EXPECT_EQ(b.receives(kC, an_end(RunState::kInterrupted, 1, "node-c was shut down")), "");
      EXPECT_EQ(b.loses(kC, "no sign of life from node-c for 10 s"), "");
      return b.disconnects(kC);
    case FailureCause::kStaleFrame:
      EXPECT_EQ(b.receives(kC, Fail{}, 99), "");
      EXPECT_EQ(b.receives(kC, schema::Goodbye{"node-c was shut down"}, 99), "");
      EXPECT_EQ(b.receives(kC, schema::Commit{}, kKey, 2), "");
      EXPECT_EQ(b.receives(kC, schema::Prepare{ballot(1, kC)}, kKey, 2), "");
      return b.receives(kC, an_end(RunState::kCompleted, 1), 99);
  }
  return "?";
}

TEST(FailurePolicy, EveryCauseHasTheEffectOfTheTable) {
  for (const FailurePolicy& row : kFailurePolicies) {
    EXPECT_EQ(&policy_for(row.cause), &row) << "in the order of their values";
    const std::string done = happens(row.cause);
    if (row.end)
      EXPECT_NE(done.find("save run-1: " + std::string(to_word(*row.end))), std::string::npos) << done;
    else if (row.effect == Effect::kEvictMember)
      EXPECT_EQ(done.find("suspect "), 0u) << done;
    else
      EXPECT_EQ(done, "");
    // Only a failure that cannot be mended ends a run for good, and all members report it in the end.
    EXPECT_EQ(row.effect == Effect::kEndRun, row.end && *row.end != RunState::kInterrupted);
  }
}

TEST(RunOutcome, AuthoritativeOverTheFirstFailureOverTheLastInterruption) {
  const auto word = [](RunState state, std::int64_t since_ms) {
    return an_end(state, since_ms, std::to_string(since_ms));
  };
  const std::vector<schema::Ended> order{word(RunState::kCompleted, 90), word(RunState::kFailed, 70),
                                         word(RunState::kFailed, 80), word(RunState::kInterrupted, 20),
                                         word(RunState::kInterrupted, 10)};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < order.size(); ++j) EXPECT_EQ(overrides(order[i], order[j]), i < j) << i << " " << j;
  EXPECT_TRUE(overrides(word(RunState::kStopped, 5), word(RunState::kFailed, 1)));
}

TEST(RunOutcome, AnInterruptedMemberKeepsItsStateOfAFact) {
  Per<Seat, std::optional<schema::Ended>> words(2);
  words[kA] = an_end(RunState::kInterrupted, 10, "node-a was shut down");
  words[kB] = an_end(RunState::kCompleted, 20);
  const RunOutcome same = resolve_outcome(words, kA);
  EXPECT_EQ(same.truth.state, RunState::kCompleted);
  EXPECT_EQ(same.truth.save, schema::SaveState::kSaved);
  words[kA] = an_end(RunState::kInterrupted, 10, "node-a was shut down", schema::SaveState::kSaved, 8);
  EXPECT_EQ(resolve_outcome(words, kA).truth.save, schema::SaveState::kNothing) << "of another step";
}

}  // namespace
}  // namespace tg::daemon

// Every row of the table of causes: how a run ends of it, at a member that has begun.
#include "daemon/membership/causes.h"

#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Fail;
using schema::RunState;

// What a running member of three does when this happens to it; node-a is the most senior.
std::string happens(Cause cause) {
  Machine b = running_member();
  switch (cause) {
    case Cause::kAllReported:
      return b.finishes(RunState::kCompleted, "");
    case Cause::kStopAsked:
      EXPECT_EQ(b.stops(), "ask to stop");
      EXPECT_EQ(b.stopping(), "");
      return b.finishes(RunState::kStopped, "");
    case Cause::kTraining:
      return b.fails({ErrorKind::kRunFailed, "node-c", "backward", "the gradient of fc.weight on node-c is NaN"});
    case Cause::kNobodyFit: {
      Machine a = running(kA, 2);
      a.fails({ErrorKind::kIo, "node-a", "data", "node-a cannot read /data"});
      schema::Promise unfit = promise(kB, ballot(1, kA));
      unfit.unfit = "node-b cannot read /data";
      return a.hears(kB, unfit);
    }
    case Cause::kOwnError: {
      Machine stuck = b;
      EXPECT_EQ(stuck.loses(kB, "node-b is stuck"), "suspect b to a c: node-b is stuck");
      return b.fails({ErrorKind::kIo, "node-b", "data", "node-b cannot read /data"});
    }
    case Cause::kHeardFailure: {
      Machine told = b;
      EXPECT_EQ(told.hears(kC, an_end(RunState::kFailed, 1, "why")), "save run-1: FAILED: why");
      return b.hears(kA, Fail{ErrorKind::kRunFailed, "node-c", "", "why"});
    }
    case Cause::kLostConnection:
      return b.disconnects(kC);
    case Cause::kSilence:
      return b.loses(kC, "no sign of life from node-c for 10 s");
    case Cause::kHeardInterruption:
      return b.hears(kC, an_end(RunState::kInterrupted, 1, "node-c was shut down"));
    case Cause::kGoodbye:
      return b.hears(kC, schema::Goodbye{"node-c was shut down"});
    case Cause::kOwnShutDown:
      b.disconnects(kA);
      b.disconnects(kC);
      return b.shuts_down();
    case Cause::kLeftOut:
      return b.hears(kA, schema::Decide{next_view({kA, kC})});
    case Cause::kStopWhilePaused:
      b.disconnects(kA);
      b.disconnects(kC);
      return b.stops();
    case Cause::kToldToLeave:
      b.leaves();
      b.is_held();
      return b.hears(kA, schema::Decide{next_view({kA, kC})});
    case Cause::kLostOutsider:
      b.hears(kA, schema::Decide{next_view({kA, kB})});
      EXPECT_EQ(b.hears(kC, an_end(RunState::kInterrupted, 1, "node-c was left out"), kKey, 2), "");
      EXPECT_EQ(b.hears(kC, an_end(RunState::kFailed, 1, "something"), kKey, 2), "");
      EXPECT_EQ(b.hears(kC, Fail{ErrorKind::kRunFailed, "node-c", "", "why"}, kKey, 2), "");
      EXPECT_EQ(b.loses(kC, "no sign of life from node-c for 10 s"), "");
      return b.disconnects(kC);
    case Cause::kFinishedAndLeft:
      EXPECT_EQ(b.finished(kC), "");
      EXPECT_EQ(b.hears(kC, schema::Goodbye{"node-c was shut down"}), "");
      EXPECT_EQ(b.hears(kC, an_end(RunState::kInterrupted, 1, "node-c was shut down")), "");
      EXPECT_EQ(b.loses(kC, "no sign of life from node-c for 10 s"), "");
      return b.disconnects(kC);
    case Cause::kNewsOfAnotherTime:
      EXPECT_EQ(b.hears(kC, Fail{}, 99), "");
      EXPECT_EQ(b.hears(kC, schema::Goodbye{"node-c was shut down"}, 99), "");
      EXPECT_EQ(b.hears(kC, schema::Commit{}, kKey, 2), "");
      EXPECT_EQ(b.hears(kC, schema::Prepare{ballot(1, kC)}, kKey, 2), "");
      return b.hears(kC, an_end(RunState::kCompleted, 1), 99);
  }
  return "?";
}

TEST(Causes, EachCostsWhatTheTableSays) {
  for (const CauseRow& row : kCauses) {
    EXPECT_EQ(&row_of(row.cause), &row) << "in the order of their values";
    const std::string done = happens(row.cause);
    if (row.end)
      EXPECT_NE(done.find("save run-1: " + std::string(to_word(*row.end))), std::string::npos) << done;
    else if (row.cost == Cost::kAMember)
      EXPECT_EQ(done.find("suspect "), 0u) << done;
    else
      EXPECT_EQ(done, "");
    // What cannot be mended is told by all in the end: only such causes end a run for good.
    EXPECT_EQ(row.cost == Cost::kTheRun, row.end && *row.end != RunState::kInterrupted);
  }
}

TEST(RunEnd, FactsOverFailuresOverInterruptionsAndOfEqualsTheFirst) {
  const auto word = [](RunState state, std::int64_t since_ms) {
    return an_end(state, since_ms, std::to_string(since_ms));
  };
  const std::vector<schema::Ended> order{word(RunState::kCompleted, 90), word(RunState::kFailed, 70),
                                         word(RunState::kFailed, 80), word(RunState::kInterrupted, 10),
                                         word(RunState::kInterrupted, 20)};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < order.size(); ++j) EXPECT_EQ(overrides(order[i], order[j]), i < j) << i << " " << j;
  EXPECT_TRUE(overrides(word(RunState::kStopped, 5), word(RunState::kFailed, 1)));
}

TEST(RunEnd, AnInterruptedMemberKeepsItsStateOfAFact) {
  Per<Seat, std::optional<schema::Ended>> words(2);
  words[kA] = an_end(RunState::kInterrupted, 10, "node-a was shut down");
  words[kB] = an_end(RunState::kCompleted, 20);
  const RunEnd same = settled(words, kA);
  EXPECT_EQ(same.truth.state, RunState::kCompleted);
  EXPECT_EQ(same.truth.save, schema::SaveState::kSaved);
  words[kA] = an_end(RunState::kInterrupted, 10, "node-a was shut down", schema::SaveState::kSaved, 8);
  EXPECT_EQ(settled(words, kA).truth.save, schema::SaveState::kNothing) << "of another step";
}

}  // namespace
}  // namespace tg::daemon

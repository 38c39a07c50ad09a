// A run is PAUSED without a quorum: what it reports, what a stop does, and how it resumes.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Decide;
using schema::Prepare;
using schema::RunState;

// Node-d of four; node-a and node-c are unreachable, and node-b, the coordinator, has its promise of step 812.
Machine paused() {
  Machine d = running(kD, 4);
  d.has_committed(812);
  d.disconnects(kA);
  d.disconnects(kC);
  d.receives(kB, Prepare{ballot(1, kB)});
  return d;
}

TEST(Paused, ThePauseNamesTheMissingNodesAndTheNextStep) {
  Machine d = paused();
  EXPECT_EQ(d->state(), RunState::kPaused);
  EXPECT_EQ(d->pause_reason(),
            "quorum lost: 2 of 4 voters reachable; resumes when node-a or node-c returns; `tgctl stop` keeps step 812");
  EXPECT_EQ(d.connects(kC), "");
  EXPECT_EQ(d->state(), RunState::kRunning) << "it ends by itself";
  EXPECT_EQ(d->pause_reason(), "");
}

TEST(Paused, AQuorumIsNotPaused) {
  Machine b = running(kB, 4);
  EXPECT_EQ(b->pause_reason(), "");
  b.disconnects(kC);
  EXPECT_EQ(b->pause_reason(), "") << "three of four";
}

// Node-b is heard, and says nothing.
TEST(Paused, PausedIfAReachableVoterDoesNotAnswer) {
  Machine a = running(kA, 3);
  a.disconnects(kC);
  a.waits(9'999);
  EXPECT_EQ(a->pause_reason(), "");
  a.waits(1);
  EXPECT_EQ(a->pause_reason(),
            "quorum lost: 1 of 3 voters reachable; resumes when node-b or node-c returns; `tgctl stop` keeps step 12");
}

TEST(Paused, PausedIfNoReachableMemberIsEligible) {
  Machine a = running(kA, 3);
  a.fails({ErrorKind::kIo, "node-a", "data", "node-a cannot read /data"});
  a.disconnects(kC);
  schema::Promise none = promise(kB, ballot(1, kA));
  none.has_state = false;
  a.receives(kB, none);
  EXPECT_EQ(a->pause_reason(),
            "no reachable member can continue the run; resumes when node-c can; `tgctl stop` keeps "
            "step 12");
}

TEST(Paused, AStopEndsThisPartAlone) {
  Machine d = paused();
  const std::string left = "left at step 812: stopped here while PAUSED";
  EXPECT_EQ(d.stops(), "save run-1: INTERRUPTED: " + left);
  EXPECT_EQ(d.saves(an_end(RunState::kInterrupted, 60, left, schema::SaveState::kSaved, 812)),
            "ended? to a b c: INTERRUPTED, " + left + ", saved" + "\nend run-1: INTERRUPTED: " + left +
                " (a ?, b ?, c ?, d saved)" + "\nended? to b: INTERRUPTED, " + left + ", saved");
  EXPECT_TRUE(d->idle());
  EXPECT_EQ(d.start("run-2", 78), "") << "a new one may wait for its members";
  EXPECT_EQ(d.stops("run-2").find("end run-2"), 0u);
  // Its vote counts, with nothing in memory; nothing ends elsewhere.
  EXPECT_EQ(d.connects(kA).find("suspect d to a: node-d has no state of the run in memory"), 0u);
  EXPECT_EQ(d.receives(kA, Prepare{ballot(2, kA)}), "write view 1, promised 2a\npromise 2a to a: no state");
  Machine a = running(kA, 4);
  EXPECT_EQ(a.receives(kD, an_end(RunState::kInterrupted, 60, left)).find("suspect d to b c d: " + left), 0u);
  EXPECT_EQ(a->state(), RunState::kRunning);
}

}  // namespace
}  // namespace tg::daemon

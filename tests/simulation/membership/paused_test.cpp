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

// Node-a and node-b of four are back without their votes: all learn it, though only node-c asks.
TEST(Paused, ALostVoteIsNamedWithTheWayOut) {
  Machine a(kA, 4), c = running(kC, 4), d = running(kD, 4);
  for (Machine* one : {&c, &d}) {
    one->disconnects(kA);
    one->disconnects(kB);
  }
  d.receives(kC, Prepare{ballot(1, kC)});
  EXPECT_EQ(c->pause_reason(),
            "quorum lost: 2 of 4 voters reachable; resumes when node-a or node-b returns; `tgctl stop` keeps step 12");
  c.connects(kA);
  EXPECT_EQ(a.receives(kC, c.sent<Prepare>()),
            "promise 1c to b c d: no state, unfit: it has no record of the run: its state directory was replaced or "
            "emptied");
  const schema::Promise lost = a.sent<schema::Promise>();
  for (Machine* one : {&c, &d}) {
    one->receives(kA, lost);
    EXPECT_EQ(
        (*one)->pause_reason(),
        "quorum lost: 2 of 4 voters reachable; resumes when node-b returns (node-a: it has no record of the run: its "
        "state directory was replaced or emptied); `tgctl stop` keeps step 12");
    one->receives(kB, lost);
    EXPECT_EQ((*one)->state(), RunState::kPaused);
    const std::string node = one == &c ? "node-c" : "node-d";
    EXPECT_EQ((*one)->pause_reason(),
              "quorum lost: the vote of node-a, node-b is lost, and no node's return helps; `tgctl stop run-1` "
              "keeps step 12, then `tgctl resume run-1` at " +
                  node +
                  " continues it (node-a: it has no record of the run: its state directory was replaced or emptied; "
                  "node-b: it has no record of the run: its state directory was replaced or emptied)");
  }
  // A node that is about to begin the run, is in it, or knows its end has lost nothing.
  Machine begins(kB, 3);
  begins.receives(kA, proposal("run-1"));
  EXPECT_EQ(begins.receives(kA, Prepare{ballot(1, kA)}), "");
  EXPECT_EQ(running(kB, 3).receives(kA, Prepare{ballot(1, kA)}, 78), "");
}

TEST(Paused, WithoutTheLostVoteAndWithoutAStateTheRunFails) {
  Machine a = running(kA, 3);
  a.fails({ErrorKind::kIo, "node-a", "data", "node-a cannot read /data"});
  schema::Promise none = promise(kB, ballot(1, kA)), lost{.ballot = ballot(1, kA), .unfit = "its vote is damaged"};
  none.has_state = false;
  EXPECT_EQ(a.receives(kC, lost), "");
  EXPECT_EQ(a.receives(kB, none).find("fail to b c: "), 0u) << "no return of node-c helps";
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

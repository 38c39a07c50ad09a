// Running runs: losses, stops, the end of a node.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Commit;
using schema::Fail;
using schema::Goodbye;
using schema::RunState;

TEST(Membership, StrangersAreIgnored) {
  Machine a = proposing();
  EXPECT_EQ(a.hears(kB, yes(), 99), "") << "another run's";
  EXPECT_EQ(a.hears(Seat(7), yes()), "") << "nobody's";
  EXPECT_EQ(a.hears(kB, Fail{}, 99), "");
  EXPECT_EQ(a.hears(kB, yes(), kKey, 2), "") << "another view's";
  EXPECT_EQ(a.hears(kB, schema::Hello{}), "");
  EXPECT_EQ(a.prepares(yes()), "");
  EXPECT_EQ(a.hears(kC, yes()), "");
  EXPECT_EQ(a->state(), RunState::kStarting) << "the vote of node-b is still missing";

  Machine b = voted();
  EXPECT_EQ(b.hears(kA, Commit{}), "") << "not the proposer";
  EXPECT_EQ(b.hears(kC, Commit{}, 99),
            "fail to c (key 99): node-b, run failed: node-b had given up waiting for the run to begin");
  EXPECT_EQ(b.hears(kC, schema::Vote{}), "");
  EXPECT_EQ(b->state(), RunState::kStarting);

  Machine c = running_member();
  EXPECT_EQ(c.hears(kA, Fail{ErrorKind::kFailed, "", "", "old news"}, 99), "");
  EXPECT_EQ(c.hears(kC, Commit{}), "") << "the second one";
  EXPECT_EQ(c.hears(kA, Goodbye{"node-a was shut down"}, 99), "") << "of another run";
  EXPECT_EQ(c.hears(kA, Goodbye{"node-a was shut down"}, 0), "") << "of no run: its connection says the rest";
  EXPECT_EQ(c->state(), RunState::kRunning);

  Machine d = proposing();
  EXPECT_EQ(d.hears(kB, Goodbye{"node-b was shut down"}, 99), "");
  EXPECT_EQ(d.hears(kB, Goodbye{"node-b was shut down"}, 0),
            proposal_fails("node-b", "unreachable", "node-b was shut down"))
      << "it had not read the proposal";
}

TEST(Membership, TheFirstCauseWinsAndIsShownAsReceived) {
  Machine a = running_proposer();
  EXPECT_EQ(
      a.hears(kB, Fail{ErrorKind::kRunFailed, "node-c", "backward", "the gradient of fc.weight on node-c is NaN"}),
      "end run-1: FAILED: the gradient of fc.weight on node-c is NaN");
  EXPECT_EQ(a.hears(kC, Fail{ErrorKind::kRunFailed, "node-b", "", "something later"}), "");
  EXPECT_EQ(a.loses(kB, "no sign of life from node-b for 10 s"), "");
  EXPECT_EQ(a.fails({ErrorKind::kFailed, "node-a", "", "later still"}), "");
}

TEST(Membership, LossesAndErrorsOfARunGoToAll) {
  const std::string silent = "no sign of life from node-a for 10 s (last seen in backward of step 12)";
  EXPECT_EQ(running_member().loses(kA, silent), run_fails("node-a", "run failed", silent));
  const std::string stuck = "node-b is stuck in backward of step 3 for 60 s";
  EXPECT_EQ(running_member().loses(kB, stuck), run_fails("node-b", "run failed", stuck)) << "itself";
  const std::string full = "node-b: no space left";
  EXPECT_EQ(running_member().fails({ErrorKind::kIo, "node-b", "save", full}), run_fails("node-b", "io", full));
}

TEST(Membership, AFinishedPeerMayLeave) {
  Machine b = running_member();
  b->peer_finished(kA);
  EXPECT_EQ(b.disconnects(kA), "");
  EXPECT_EQ(b.hears(kA, Goodbye{"node-a was shut down"}, 0), "");
  EXPECT_EQ(b->state(), RunState::kRunning);
  EXPECT_EQ(b.hears(kC, Goodbye{"node-c was shut down"}), "end run-1: FAILED: node-c was shut down");
}

TEST(Membership, StopBeforeTheRunBegins) {
  const std::string at_a = "run run-1 was stopped at node-a before it began";
  Machine pending(kA, 3, false);
  EXPECT_EQ(pending.start(), "");
  EXPECT_EQ(pending.stops("run-9"), "no: no run run-9 is in progress on node-a");
  EXPECT_EQ(pending.stops(), start_ends("STOPPED", "refused", at_a));

  EXPECT_EQ(proposing().stops(), proposal_fails("node-a", "refused", at_a));

  Machine b = voted();
  EXPECT_EQ(b.stops(), "vote no to c: refused: run run-1 was stopped at node-b before it began");
  Machine late = b, prepared = preparing();
  EXPECT_EQ(b.hears(kC, Commit{}), "begin run-1, direct\nask to stop") << "it had left already";

  // A proposer that does not decide holds nobody who was asked to stop.
  EXPECT_EQ(late.waits(4'999), "");
  EXPECT_EQ(late.waits(1), "drop");
  EXPECT_EQ(prepared.stops(), "vote no to c: refused: run run-1 was stopped at node-b before it began");
  EXPECT_EQ(prepared.prepares(yes()), "") << "its vote is no";
  EXPECT_EQ(prepared.waits(5'000), "drop");
}

TEST(Membership, StopOfARunningRunIsAskedOnce) {
  Machine b = running_member();
  EXPECT_EQ(b.stops(), "ask to stop");
  EXPECT_EQ(b.stops(), "");
  EXPECT_EQ(b->state(), RunState::kRunning);
  b->stopping();
  EXPECT_EQ(b->state(), RunState::kStopping);
  EXPECT_EQ(b.finishes(RunState::kStopped, "stopped by a user"), "end run-1: STOPPED: stopped by a user");
  EXPECT_EQ(b.stops(), "no: no run run-1 is in progress on node-b");
}

TEST(Membership, ShuttingDownSaysGoodbyeAndLeavesNothingOpen) {
  const std::string of_a = "node-a was shut down", of_b = "node-b was shut down";
  Machine idle(kB, 3);
  EXPECT_EQ(idle.shuts_down(), "goodbye to a c (key 0): " + of_b);
  EXPECT_EQ(idle.start(), "answer run-1: refused: node-b is being shut down");
  EXPECT_EQ(idle.hears(kC, schema::Propose{"run-1", ""}), "vote no to c: refused: node-b is being shut down");

  Machine pending(kA, 3, false);
  EXPECT_EQ(pending.start(), "");
  EXPECT_EQ(pending.shuts_down(), start_ends("FAILED", "refused", of_a) + "\ngoodbye to b c: " + of_a);
  EXPECT_EQ(proposing().shuts_down(), proposal_fails("node-a", "refused", of_a) + "\ngoodbye to b c: " + of_a);

  Machine b = running_member();
  EXPECT_EQ(b.shuts_down(), "goodbye to a c: " + of_b + "\nend run-1: FAILED: " + of_b);
  const auto goodbye = b.sent<Goodbye>();
  EXPECT_EQ(running_proposer().hears(kB, goodbye), "end run-1: FAILED: " + of_b);
  EXPECT_EQ(proposing().hears(kB, goodbye), proposal_fails("node-b", "unreachable", of_b));
  EXPECT_EQ(voted().hears(kC, Goodbye{""}), "drop");
}

}  // namespace
}  // namespace tg::daemon

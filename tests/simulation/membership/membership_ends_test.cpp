// Running runs: losses, stops, the end of a node.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Commit;
using schema::Fail;
using schema::Goodbye;
using schema::RunState;

TEST(Membership, AVoteWithoutARecordEndsWithItsRun) {
  Machine a = restarted(kA, 2);
  EXPECT_EQ(a.receives(kB, an_end(RunState::kInterrupted, 60, "node-b was shut down")), "") << "no end for all";
  EXPECT_NE(a.receives(kB, schema::Prepare{ballot(1, kB)}), "") << "it votes";
  EXPECT_EQ(a.receives(kB, an_end(RunState::kCompleted, 60)), "record: COMPLETED ()");
  EXPECT_EQ(a.receives(kB, an_end(RunState::kCompleted, 60)), "");
}

TEST(Membership, StrangersAreIgnored) {
  Machine a = proposing();
  EXPECT_EQ(a.receives(kB, yes(), 99), "") << "another run's";
  EXPECT_EQ(a.receives(Seat(7), yes()), "") << "no node's";
  EXPECT_EQ(a.receives(kB, Fail{}, 99), "");
  EXPECT_EQ(a.receives(kB, yes(), kKey, 2), "") << "another view's";
  EXPECT_EQ(a.receives(kB, schema::Hello{}), "");
  EXPECT_EQ(a.prepares(yes()), "");
  EXPECT_EQ(a.receives(kC, yes()), "");
  EXPECT_EQ(a->state(), RunState::kStarting) << "the vote of node-b is still missing";

  Machine b = voted();
  EXPECT_EQ(b.receives(kA, Commit{}), "") << "not the proposer";
  EXPECT_EQ(b.receives(kC, Commit{}, 99),
            "fail to c (key 99): node-b, run failed: node-b had given up waiting for the run to begin");
  EXPECT_EQ(b.receives(kC, schema::Vote{}), "");
  EXPECT_EQ(b->state(), RunState::kStarting);

  Machine c = running_member();
  EXPECT_EQ(c.receives(kA, Fail{ErrorKind::kFailed, "", "", "old news"}, 99), "");
  EXPECT_EQ(c.receives(kC, Commit{}), "") << "the second one";
  EXPECT_EQ(c.receives(kA, Goodbye{"node-a was shut down"}, 99), "") << "of another run";
  EXPECT_EQ(c.receives(kA, Goodbye{"node-a was shut down"}, 0), "") << "of no run: its connection says the rest";
  EXPECT_EQ(c->state(), RunState::kRunning);

  Machine d = proposing();
  EXPECT_EQ(d.receives(kB, Goodbye{"node-b was shut down"}, 99), "");
  EXPECT_EQ(d.receives(kB, Goodbye{"node-b was shut down"}, 0),
            proposal_fails("node-b", "unreachable", "node-b was shut down"))
      << "it had not read the proposal";
}

TEST(Membership, TheFirstCauseWinsAndIsShownAsReceived) {
  Machine a = running_proposer();
  EXPECT_EQ(
      a.receives(kB, Fail{ErrorKind::kRunFailed, "node-c", "backward", "the gradient of fc.weight on node-c is NaN"}),
      "save run-1: FAILED: the gradient of fc.weight on node-c is NaN");
  EXPECT_EQ(a.receives(kC, Fail{ErrorKind::kRunFailed, "node-b", "", "something later"}), "");
  EXPECT_EQ(a.loses(kB, "no sign of life from node-b for 10 s"), "");
  EXPECT_EQ(a.fails({ErrorKind::kFailed, "node-a", "", "later still"}), "");
}

TEST(Membership, AnUnrecoverableFailureEndsTheRunForAll) {
  const std::string differ = "digests differ: node-a has 1, node-b has 2";
  EXPECT_EQ(running_member().fails({ErrorKind::kRunFailed, "node-a", "forward", differ}),
            run_fails("node-a", "run failed", differ));
}

TEST(Membership, ALossEvictsAMember) {
  const std::string leads = "\nwrite view 1, promised 1b\nseal\nprepare 1b to a c";
  const std::string silent = "no sign of life from node-a for 10 s (its last heartbeat said backward of step 12)";
  EXPECT_EQ(running_member().loses(kA, silent), "suspect a to a c: " + silent + leads);
  const std::string stuck = "node-b is stuck in backward of step 3 for 60 s";
  EXPECT_EQ(running_member().loses(kB, stuck), "suspect b to a c: " + stuck) << "itself; node-a leads";
  const std::string full = "node-b: no space left";
  EXPECT_EQ(running_member().fails({ErrorKind::kIo, "node-b", "save", full}), "suspect b to a c: " + full);
}

TEST(Membership, AFinishedPeerMayLeave) {
  Machine b = running_member();
  EXPECT_EQ(b.finished(kA), "");
  EXPECT_EQ(b.disconnects(kA), "");
  EXPECT_EQ(b.receives(kA, Goodbye{"node-a was shut down"}, 0), "");
  EXPECT_EQ(b->state(), RunState::kRunning);
  EXPECT_EQ(b.receives(kC, Goodbye{"node-c was shut down"}).find("suspect c to a c: node-c was shut down"), 0u);
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
  EXPECT_EQ(b.receives(kC, Commit{}), "begin run-1, direct\nask to stop\nwrite view 1") << "it had left already";

  // A proposer that does not decide holds back no node that was asked to stop.
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
  EXPECT_EQ(b.stopping(), "");
  EXPECT_EQ(b->state(), RunState::kStopping);
  EXPECT_EQ(b.finishes(RunState::kStopped, "stopped by a user"), "save run-1: STOPPED: stopped by a user");
  EXPECT_EQ(b.stops(), "") << "it has ended, but no node says so yet";
  EXPECT_EQ(b->state(), RunState::kStopping);
}

// --- the verdict ---

const schema::Ended kCompletedHere = an_end(RunState::kCompleted, 50);

Machine saving_member() {
  Machine b = running_member();
  EXPECT_EQ(b.finishes(RunState::kCompleted, ""), "save run-1: COMPLETED");
  return b;
}

TEST(Membership, NoOutcomeIsAnnouncedBeforeAllHaveSaved) {
  Machine b = saving_member();
  EXPECT_EQ(b.receives(kA, an_end(RunState::kCompleted, 40)), "");
  EXPECT_EQ(b.saves(kCompletedHere), "ended to a: COMPLETED, saved\nended? to c: COMPLETED, saved");
  EXPECT_EQ(b->state(), RunState::kRunning);
  EXPECT_EQ(b.start("run-2", 78),
            "answer run-2: refused: run run-1 is already RUNNING, proposed by node-c; wait for it, or stop it: tgctl "
            "stop run-1")
      << "still busy";
  EXPECT_EQ(b.receives(kC, an_end(RunState::kCompleted, 45, "", schema::SaveState::kNotSaved)),
            "end run-1: COMPLETED (a saved, b saved, c not saved)");
  EXPECT_TRUE(b->idle());
}

TEST(Membership, AMemberLostWhileSavingIsNotWaitedFor) {
  Machine b = saving_member();
  b.saves(kCompletedHere);
  b.receives(kA, an_end(RunState::kCompleted, 40));
  EXPECT_EQ(b.disconnects(kC), "end run-1: COMPLETED (a saved, b saved, c ?)");
  // It comes back, has nothing, and does not know how it ended.
  EXPECT_EQ(b.connects(kC), "ended? to c: COMPLETED, saved");
  schema::Ended c = an_end(RunState::kInterrupted, 90, "node-c ended unexpectedly", schema::SaveState::kNothing, 0);
  c.asks = true;
  EXPECT_EQ(b.receives(kC, c), "record: COMPLETED (a saved, b saved, c nothing saved)\nended to c: COMPLETED, saved");
  EXPECT_EQ(b.receives(kC, c), "ended to c: COMPLETED, saved") << "nothing new";
}

TEST(Membership, AnAuthoritativeOutcomeOverridesAFailure) {
  // The run had come to its end for node-c before node-b saw something.
  Machine b = running_member();
  const std::string lost = "node-a is out of step";
  const Fail cause{ErrorKind::kRunFailed, "node-a", "", lost};
  EXPECT_EQ(b.fails(cause), run_fails("node-a", "run failed", lost));
  EXPECT_EQ(b.saves(an_end(RunState::kFailed, 60, lost)), "ended? to a c: FAILED, " + lost + ", saved");
  EXPECT_EQ(b.disconnects(kA), "");
  EXPECT_EQ(b.receives(kC, an_end(RunState::kCompleted, 61)), "end run-1: COMPLETED (a ?, b saved, c saved)");

  // The same while the run is still active here.
  Machine late = running_member();
  EXPECT_EQ(late.receives(kC, an_end(RunState::kStopped, 61)), "save run-1: STOPPED");

  // The same after the verdict: node-a comes back from its disk with the authoritative outcome.
  Machine after = running_member();
  after.fails(cause);
  after.disconnects(kA);
  after.saves(an_end(RunState::kFailed, 60, lost));
  EXPECT_EQ(after.receives(kC, an_end(RunState::kFailed, 62, "something else")),
            "end run-1: FAILED: " + lost + " (a ?, b saved, c saved)\nended to c: FAILED, " + lost + ", saved")
      << "which node-c does not know for sure";
  EXPECT_EQ(after.connects(kA), "ended? to a: FAILED, " + lost + ", saved");
  EXPECT_EQ(after.receives(kA, an_end(RunState::kCompleted, 40)),
            "record: COMPLETED (a saved, b saved, c saved)\nended to a c: COMPLETED, saved");
}

TEST(Membership, AStateOfAnotherStepIsNotTheRuns) {
  Machine b = running_member();
  b.fails({ErrorKind::kRunFailed, "node-a", "", "lost"});
  b.disconnects(kA);
  b.saves(an_end(RunState::kFailed, 60, "lost", schema::SaveState::kSaved, 8));
  EXPECT_EQ(b.receives(kC, an_end(RunState::kCompleted, 61)), "end run-1: COMPLETED (a ?, b nothing saved, c saved)");
}

TEST(Membership, TheFirstOfSeveralCausesIsTheCause) {
  Machine b = running_member();
  b.fails({ErrorKind::kRunFailed, "node-b", "data", "mine"});
  b.saves(an_end(RunState::kFailed, 60, "mine"));
  b.receives(kA, an_end(RunState::kFailed, 59, "of node-a"));
  EXPECT_EQ(b.receives(kC, an_end(RunState::kFailed, 61, "of node-c")),
            "end run-1: FAILED: of node-a (a saved, b saved, c saved)\nended to c: FAILED, of node-a, saved");
}

TEST(Membership, TheMemberThatCausedTheEndIsWaitedForBriefly) {
  Machine b = running_member();
  EXPECT_EQ(b.receives(kA, Fail{ErrorKind::kRunFailed, "node-c", "", "no sign of life from node-c"}),
            "save run-1: FAILED: no sign of life from node-c");
  b.receives(kA, an_end(RunState::kFailed, 60, "no sign of life from node-c"));
  b.saves(an_end(RunState::kFailed, 61, "no sign of life from node-c"));
  EXPECT_EQ(b.waits(299), "");
  EXPECT_EQ(b.waits(1),
            "end run-1: FAILED: no sign of life from node-c (a saved, b saved, c ?)\n"
            "ended? to c: FAILED, no sign of life from node-c, saved");
}

TEST(Membership, ADiskThatComesBackLaterIsHeardOf) {
  Machine b = saving_member();
  b.receives(kA, an_end(RunState::kCompleted, 40));
  b.receives(kC, an_end(RunState::kCompleted, 40));
  EXPECT_EQ(b.saves(an_end(RunState::kCompleted, 50, "", schema::SaveState::kNotSaved)),
            "ended to a c: COMPLETED, not saved\nend run-1: COMPLETED (a saved, b not saved, c saved)");
  EXPECT_EQ(b.saves(kCompletedHere), "record: COMPLETED (a saved, b saved, c saved)\nended to a c: COMPLETED, saved");
}

TEST(Membership, AShutdownWaitsBrieflyForTheOthersReports) {
  Machine b = running_member();
  for (const Seat peer : {kA, kC}) b.receives(peer, Goodbye{""});
  b.shuts_down();
  EXPECT_EQ(b.saves(an_end(RunState::kInterrupted, 60, "node-b was shut down")),
            "ended? to a c: INTERRUPTED, node-b was shut down, saved");
  Machine answered = b;
  answered.receives(kA, an_end(RunState::kInterrupted, 61, "node-b was shut down"));
  EXPECT_EQ(answered.receives(kC, an_end(RunState::kCompleted, 59)),
            "end run-1: COMPLETED (a saved, b saved, c saved)\ngoodbye to a c: node-b was shut down");
  EXPECT_EQ(b.waits(2'000),
            "end run-1: INTERRUPTED: node-b was shut down (a ?, b saved, c ?)\ngoodbye to a c: node-b was shut down");
}

TEST(Membership, ARestartedMemberLearnsTheOutcome) {
  Machine b(kB, 3, false);
  PastRun run{"run-1", Per<Seat, bool>(3, true), {}};
  run.end.truth = an_end(RunState::kInterrupted, 90, "node-b ended unexpectedly", schema::SaveState::kNothing, 0);
  run.end.members.assign(3, std::nullopt);
  run.end.members[kB] = run.end.truth;
  EXPECT_EQ(b.remembers(run), "");
  EXPECT_EQ(b.connects(kA), "ended? to a: INTERRUPTED, node-b ended unexpectedly, nothing saved");
  EXPECT_EQ(b.receives(kA, an_end(RunState::kCompleted, 40)),
            "record: COMPLETED (a saved, b nothing saved, c ?)\nended to a c: COMPLETED, nothing saved");
  EXPECT_EQ(b.connects(kC), "ended? to c: COMPLETED, nothing saved");
  EXPECT_EQ(b.receives(kA, an_end(RunState::kCompleted, 40), 99), "") << "no record of that run";
}

TEST(Membership, ShuttingDownSaysGoodbyeAndLeavesNothingOpen) {
  const std::string of_a = "node-a was shut down", of_b = "node-b was shut down";
  Machine idle(kB, 3);
  EXPECT_EQ(idle.shuts_down(), "goodbye to a c (key 0): " + of_b);
  EXPECT_EQ(idle.start(), "answer run-1: refused: node-b is being shut down");
  EXPECT_EQ(idle.receives(kC, proposal("run-1")), "vote no to c: refused: node-b is being shut down");

  Machine pending(kA, 3, false);
  EXPECT_EQ(pending.start(), "");
  EXPECT_EQ(pending.shuts_down(), start_ends("FAILED", "refused", of_a) + "\ngoodbye to b c: " + of_a);
  EXPECT_EQ(proposing().shuts_down(), proposal_fails("node-a", "refused", of_a) + "\ngoodbye to b c: " + of_a);

  Machine b = running_member();
  EXPECT_EQ(b.shuts_down(), "goodbye to a c: " + of_b);
  const auto goodbye = b.sent<Goodbye>();
  EXPECT_EQ(running_proposer().receives(kB, goodbye),
            "suspect b to b c: " + of_b + "\nwrite view 1, promised 1a\nseal\nprepare 1a to b c");
  EXPECT_EQ(proposing().receives(kB, goodbye), proposal_fails("node-b", "unreachable", of_b));
  EXPECT_EQ(voted().receives(kC, Goodbye{""}), "drop");
}

}  // namespace
}  // namespace tg::daemon

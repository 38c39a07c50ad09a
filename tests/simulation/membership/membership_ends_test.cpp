// Running runs: losses, stops, the end of a node.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::RunState;

TEST(Membership, StrangersAreIgnored) {
  Machine a = proposing();
  a.frame(kB, yes(), 99);
  a.frame(Seat(7), yes());
  a.frame(kB, schema::Fail{}, 99);
  a->frame(kB, {kKey, 2, 0}, yes(), a.now_ms);
  a.frame(kB, schema::Hello{});
  a.vote(yes());
  a.frame(kC, yes());
  EXPECT_EQ(a->state(), RunState::kStarting) << "the vote of node-b is still missing";

  Machine b = voted();
  b.frame(kA, schema::Commit{});  // not the proposer
  EXPECT_EQ(b->state(), RunState::kStarting);
  b.frame(kC, schema::Commit{}, 99);
  EXPECT_EQ(b->state(), RunState::kStarting);
  b.frame(kC, schema::Vote{});
  EXPECT_EQ(b.actions(), 0u);

  Machine c = running_member();
  c.frame(kA, schema::Fail{ErrorKind::kFailed, "", "", "old news"}, 99);
  c.frame(kC, schema::Commit{});  // twice
  EXPECT_EQ(c->state(), RunState::kRunning);
  EXPECT_EQ(c.actions(), 0u);
}

TEST(Membership, TheFirstCauseWinsAndIsShownAsReceived) {
  Machine a = running_proposer();
  a.frame(kB, schema::Fail{ErrorKind::kRunFailed, "node-c", "backward", "the gradient of fc.weight on node-c is NaN"});
  EXPECT_EQ(a.only<EndRun>().reason, "the gradient of fc.weight on node-c is NaN");
  EXPECT_TRUE(a.all<SendFrame>().empty());
  a.frame(kC, schema::Fail{ErrorKind::kRunFailed, "node-b", "", "something later"});
  a->lost(kB, "no sign of life from node-b for 10 s", a.now_ms);
  a->failed({ErrorKind::kFailed, "node-a", "", "later still"}, a.now_ms);
  a.look();
  EXPECT_EQ(a.actions(), 0u);
}

TEST(Membership, LossesAndErrorsOfARunGoToAll) {
  Machine b = running_member();
  b->lost(kA, "no sign of life from node-a for 10 s (last seen in backward of step 12)", b.now_ms);
  b.look();
  EXPECT_EQ(b.sent<schema::Fail>({kA, kC}).node, "node-a");
  EXPECT_EQ(b.only<EndRun>().state, RunState::kFailed);
  EXPECT_EQ(b.only<EndRun>().reason, "no sign of life from node-a for 10 s (last seen in backward of step 12)");

  Machine own = running_member();
  own->lost(kB, "node-b is stuck in backward of step 3 for 60 s", own.now_ms);
  own.look();
  EXPECT_EQ(own.sent<schema::Fail>({kA, kC}).node, "node-b");

  Machine c = running_member();
  c->failed({ErrorKind::kIo, "node-b", "save", "node-b: no space left"}, c.now_ms);
  c.look();
  EXPECT_EQ(c.sent<schema::Fail>({kA, kC}).message, "node-b: no space left");
  EXPECT_EQ(c.only<EndRun>().reason, "node-b: no space left");
}

TEST(Membership, AFinishedPeerMayLeave) {
  Machine b = running_member();
  b->peer_finished(kA);
  b->connection(kA, false, b.now_ms);
  b.frame(kA, schema::Goodbye{"node-a was shut down"}, 0);
  EXPECT_EQ(b->state(), RunState::kRunning);
  b.frame(kC, schema::Goodbye{"node-c was shut down"});
  EXPECT_EQ(b.only<EndRun>().reason, "node-c was shut down");
}

TEST(Membership, StopBeforeTheRunBegins) {
  Machine pending(kA, 3, false);
  pending.start();
  EXPECT_FALSE(pending->stop("run-9", pending.now_ms).ok());
  EXPECT_TRUE(pending->stop("run-1", pending.now_ms).ok());
  pending.look();
  EXPECT_EQ(pending.only<EndRun>().state, RunState::kStopped);
  EXPECT_EQ(pending.only<AnswerStart>().status.error().message, "run run-1 was stopped at node-a before it began");

  Machine a = proposing();
  EXPECT_TRUE(a->stop("run-1", a.now_ms).ok());
  a.look();
  EXPECT_EQ(a.sent<schema::Fail>({kB, kC}).message, "run run-1 was stopped at node-a before it began");
  EXPECT_EQ(a.only<DropRun>().key, kKey);

  Machine b = voted();
  EXPECT_TRUE(b->stop("run-1", b.now_ms).ok());
  b.look();
  const auto vote = b.sent<schema::Vote>({kC});
  EXPECT_EQ(vote.message, "run run-1 was stopped at node-b before it began");
  b.frame(kC, schema::Commit{});  // it had left already: stopped like a running one
  EXPECT_EQ(b.only<AskStop>().key, kKey);
}

TEST(Membership, StopOfARunningRunIsAskedOnce) {
  Machine b = running_member();
  EXPECT_TRUE(b->stop("run-1", b.now_ms).ok());
  EXPECT_TRUE(b->stop("run-1", b.now_ms).ok());
  b.look();
  EXPECT_EQ(b.only<AskStop>().key, kKey);
  EXPECT_EQ(b->state(), RunState::kRunning);
  b->stopping();
  EXPECT_EQ(b->state(), RunState::kStopping);
  b->finished(RunState::kStopped, "stopped by a user", b.now_ms);
  b.look();
  EXPECT_EQ(b.only<EndRun>().state, RunState::kStopped);
  EXPECT_FALSE(b->stop("run-1", b.now_ms).ok());
}

TEST(Membership, ShuttingDownSaysGoodbyeAndLeavesNothingOpen) {
  Machine idle(kB, 3);
  idle->shut_down(idle.now_ms);
  idle.look();
  idle.sent<schema::Goodbye>({kA, kC}, 0);
  idle.start();
  EXPECT_EQ(idle.only<AnswerStart>().status.error().message, "node-b is being shut down");
  idle.frame(kC, schema::Propose{"run-1", ""});
  EXPECT_FALSE(idle.sent<schema::Vote>({kC}).accepted);

  Machine pending(kA, 3, false);
  pending.start();
  pending->shut_down(pending.now_ms);
  pending.look();
  EXPECT_EQ(pending.only<EndRun>().state, RunState::kFailed);
  EXPECT_FALSE(pending.only<AnswerStart>().status.ok());

  Machine a = proposing();
  a->shut_down(a.now_ms);
  a.look();
  EXPECT_EQ(a.sent<schema::Fail>({kB, kC}).message, "node-a was shut down");
  EXPECT_FALSE(a.only<AnswerStart>().status.ok());

  Machine b = running_member();
  b->shut_down(b.now_ms);
  b.look();
  EXPECT_EQ(b.only<EndRun>().reason, "node-b was shut down");
  const auto goodbye = b.sent<schema::Goodbye>({kA, kC});

  Machine c = running_proposer();
  c.frame(kB, goodbye);
  EXPECT_EQ(c.only<EndRun>().reason, "node-b was shut down");
  Machine d = proposing();
  d.frame(kB, goodbye);
  EXPECT_EQ(d.only<AnswerStart>().status.error().message, "node-b was shut down");
  Machine e = voted();
  e.frame(kC, schema::Goodbye{""});
  EXPECT_EQ(e.only<DropRun>().key, kKey);
}

}  // namespace
}  // namespace tg::daemon

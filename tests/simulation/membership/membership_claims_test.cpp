// The right to propose: claims, grants, who is refused and why.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::RunState;

TEST(Membership, OtherSeatsClaimFirst) {
  Machine b(kB, 3);
  b.start();
  EXPECT_EQ(b.sent<schema::Claim>({kA}).run_id, "run-1");
  EXPECT_EQ(b->state(), RunState::kPending);
  b.frame(kC, schema::Grant{true, ""});  // not hers to give
  EXPECT_EQ(b.actions(), 0u);
  b.frame(kA, schema::Grant{true, ""});
  b.sent<schema::Propose>({kA, kC});
  EXPECT_EQ(b->state(), RunState::kStarting);
}

TEST(Membership, ARefusedClaimNamesTheRunThatHasTheRight) {
  Machine a = running_proposer();
  a.frame(kC, schema::Claim{"run-2"}, 88);
  const auto grant = a.sent<schema::Grant>({kC}, 88);
  EXPECT_FALSE(grant.granted);
  EXPECT_EQ(grant.message,
            "run run-1 is already RUNNING, proposed by node-a; wait for it, or stop it: tgctl stop run-1");
  Machine c(kC, 3);
  c.start("run-2", 88);
  c.frame(kA, grant, 88);
  const auto answer = c.only<AnswerStart>();
  EXPECT_EQ(answer.run_id, "run-2");
  EXPECT_EQ(answer.status.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(answer.status.error().message, grant.message);
  EXPECT_EQ(c.only<DropRun>().key, 88u);
  EXPECT_TRUE(c.all<EndRun>().empty());
  EXPECT_TRUE(c->idle());
}

TEST(Membership, ClaimsAreGrantedOneAtATimeAndLapse) {
  Machine a(kA, 3);
  a.frame(kB, schema::Claim{"run-1"});
  EXPECT_TRUE(a.sent<schema::Grant>({kB}).granted);
  a.frame(kC, schema::Claim{"run-2"}, 88);
  const auto refusal = a.sent<schema::Grant>({kC}, 88);
  EXPECT_FALSE(refusal.granted);
  EXPECT_EQ(refusal.message,
            "run run-1 is already STARTING, proposed by node-b; wait for it, or stop it: tgctl stop run-1");
  a.start("run-3", 99);
  EXPECT_EQ(a.only<AnswerStart>().status.error().message, refusal.message);
  a.frame(kB, schema::Claim{"run-1"});  // asked again: the same answer
  EXPECT_TRUE(a.sent<schema::Grant>({kB}).granted);
  a.tick(5'000);
  a.frame(kC, schema::Claim{"run-2"}, 88);
  EXPECT_TRUE(a.sent<schema::Grant>({kC}, 88).granted);
  a.frame(kB, schema::Propose{"run-1", ""});  // too late
  EXPECT_EQ(a.sent<schema::Vote>({kB}).message, "the right to start run run-1 has lapsed; start it again");
  a.frame(kC, schema::Propose{"run-2", ""}, 88);
  EXPECT_EQ(a.only<PrepareRun>().run.id, "run-2");
}

TEST(Membership, AGrantIsFreedByItsHolderOrByItsLoss) {
  Machine a(kA, 3);
  a.frame(kB, schema::Claim{"run-1"});
  a.frame(kC, schema::Fail{});  // somebody else's word does not count
  a.frame(kC, schema::Claim{"run-2"}, 88);
  EXPECT_FALSE(a.sent<schema::Grant>({kC}, 88).granted);
  a.frame(kB, schema::Fail{});
  a.frame(kC, schema::Claim{"run-2"}, 88);
  EXPECT_TRUE(a.sent<schema::Grant>({kC}, 88).granted);
  a->connection(kC, false, a.now_ms);
  a.frame(kB, schema::Claim{"run-3"}, 99);
  EXPECT_TRUE(a.sent<schema::Grant>({kB}, 99).granted);
}

TEST(Membership, WhoeverProposesHasTheGrantAndOurOwnClaimIsWithdrawn) {
  Machine b(kB, 3);
  b.start("run-2", 88);
  b.frame(kC, schema::Propose{"run-1", ""});
  EXPECT_EQ(b.only<PrepareRun>().run.id, "run-1");
  const auto answer = b.only<AnswerStart>();
  EXPECT_EQ(b.only<DropRun>().key, 88u);
  EXPECT_EQ(answer.run_id, "run-2");
  EXPECT_EQ(answer.status.error().message,
            "run run-1 is already STARTING, proposed by node-c; wait for it, or stop it: tgctl stop run-1");
  b.sent<schema::Fail>({kA}, 88);
  b.frame(kA, schema::Grant{true, ""}, 88);  // crossed with the withdrawal: given back
  b.sent<schema::Fail>({kA}, 88);
  EXPECT_EQ(b->current()->id, "run-1");
}

TEST(Membership, ABusyNodeRefusesProposalsAndStarts) {
  Machine b = running_member();
  b.frame(kA, schema::Propose{"run-2", ""}, 88);
  const auto vote = b.sent<schema::Vote>({kA}, 88);
  EXPECT_FALSE(vote.accepted);
  EXPECT_EQ(vote.message,
            "run run-1 is already RUNNING, proposed by node-c; wait for it, or stop it: tgctl stop run-1");
  b.start("run-3", 99);
  EXPECT_EQ(b.only<AnswerStart>().status.error().message, vote.message);
  EXPECT_EQ(b->current()->id, "run-1");
}

TEST(Membership, TheAbsentAreNamed) {
  Machine a(kA, 4, false);
  a.start();
  a->connection(kB, true, a.now_ms);
  a.tick(29'999);
  EXPECT_EQ(a.actions(), 0u);
  a.tick(1);
  const auto end = a.only<EndRun>();
  EXPECT_EQ(end.state, RunState::kFailed);
  EXPECT_EQ(end.reason, "node-c, node-d did not connect within 30 s; are they running and reachable?");
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kRunFailed);
  EXPECT_TRUE(a->idle());

  Machine b(kB, 2, false);
  b.start();
  b.tick(30'000);
  EXPECT_EQ(b.only<EndRun>().reason, "node-a did not connect within 30 s; is it running and reachable?");
}

TEST(Membership, AClaimWithoutAnAnswerHasADeadline) {
  Machine b(kB, 3);
  b.start();
  b.tick(5'000);
  EXPECT_EQ(b.only<EndRun>().reason, "node-a did not grant the right to start a run within 5 s; is it overloaded?");
  b.sent<schema::Fail>({kA});
  EXPECT_TRUE(b->idle());
}

TEST(Membership, AClaimIsAskedAgainWhenTheGranterIsBack) {
  Machine b(kB, 3);
  b.start();
  b->connection(kA, false, b.now_ms);
  b.look();
  EXPECT_EQ(b->state(), RunState::kPending);
  b->connection(kA, true, b.now_ms);
  b.look();
  b.sent<schema::Claim>({kA});
}

TEST(Membership, AGrantIsGivenBackIfSomebodyLeftMeanwhile) {
  Machine b(kB, 3);
  b.start();
  b->connection(kC, false, b.now_ms);
  b.frame(kA, schema::Grant{true, ""});
  b.sent<schema::Fail>({kA});
  EXPECT_EQ(b->state(), RunState::kPending);
  b->connection(kC, true, b.now_ms);
  b.look();
  b.sent<schema::Claim>({kA});
}

}  // namespace
}  // namespace tg::daemon

// The right to propose: claims, grants, who is refused and why.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::RunState;

TEST(Membership, OtherRanksClaimFirst) {
  Machine b(1, 3);
  b.start();
  EXPECT_EQ(b.sent<schema::Claim>({0}).run_id, "run-1");
  EXPECT_EQ(b->state(), RunState::kPending);
  b.frame(2, schema::Grant{true, ""});  // not hers to give
  EXPECT_EQ(b.actions(), 0u);
  b.frame(0, schema::Grant{true, ""});
  b.sent<schema::Propose>({0, 2});
  EXPECT_EQ(b->state(), RunState::kStarting);
}

TEST(Membership, ARefusedClaimNamesTheRunThatHasTheRight) {
  Machine a = running_proposer();
  a.frame(2, schema::Claim{"run-2"}, 88);
  const auto grant = a.sent<schema::Grant>({2}, 88);
  EXPECT_FALSE(grant.granted);
  EXPECT_EQ(grant.message,
            "run run-1 is already RUNNING, proposed by node-a; wait for it, or stop it: tgctl stop run-1");
  Machine c(2, 3);
  c.start("run-2", 88);
  c.frame(0, grant, 88);
  const auto answer = c.only<AnswerStart>();
  EXPECT_EQ(answer.run_id, "run-2");
  EXPECT_EQ(answer.status.error().kind, ErrorKind::kRefused);
  EXPECT_EQ(answer.status.error().message, grant.message);
  EXPECT_EQ(c.only<DropRun>().key, 88u);
  EXPECT_TRUE(c.all<EndRun>().empty());
  EXPECT_TRUE(c->idle());
}

TEST(Membership, ClaimsAreGrantedOneAtATimeAndLapse) {
  Machine a(0, 3);
  a.frame(1, schema::Claim{"run-1"});
  EXPECT_TRUE(a.sent<schema::Grant>({1}).granted);
  a.frame(2, schema::Claim{"run-2"}, 88);
  const auto refusal = a.sent<schema::Grant>({2}, 88);
  EXPECT_FALSE(refusal.granted);
  EXPECT_EQ(refusal.message,
            "run run-1 is already STARTING, proposed by node-b; wait for it, or stop it: tgctl stop run-1");
  a.start("run-3", 99);
  EXPECT_EQ(a.only<AnswerStart>().status.error().message, refusal.message);
  a.frame(1, schema::Claim{"run-1"});  // asked again: the same answer
  EXPECT_TRUE(a.sent<schema::Grant>({1}).granted);
  a.tick(5'000);
  a.frame(2, schema::Claim{"run-2"}, 88);
  EXPECT_TRUE(a.sent<schema::Grant>({2}, 88).granted);
  a.frame(1, schema::Propose{"run-1", ""});  // too late
  EXPECT_EQ(a.sent<schema::Vote>({1}).message, "the right to start run run-1 has lapsed; start it again");
  a.frame(2, schema::Propose{"run-2", ""}, 88);
  EXPECT_EQ(a.only<PrepareRun>().run.id, "run-2");
}

TEST(Membership, AGrantIsFreedByItsHolderOrByItsLoss) {
  Machine a(0, 3);
  a.frame(1, schema::Claim{"run-1"});
  a.frame(2, schema::Fail{});  // somebody else's word does not count
  a.frame(2, schema::Claim{"run-2"}, 88);
  EXPECT_FALSE(a.sent<schema::Grant>({2}, 88).granted);
  a.frame(1, schema::Fail{});
  a.frame(2, schema::Claim{"run-2"}, 88);
  EXPECT_TRUE(a.sent<schema::Grant>({2}, 88).granted);
  a->connection(2, false, a.now_ms);
  a.frame(1, schema::Claim{"run-3"}, 99);
  EXPECT_TRUE(a.sent<schema::Grant>({1}, 99).granted);
}

TEST(Membership, WhoeverProposesHasTheGrantAndOurOwnClaimIsWithdrawn) {
  Machine b(1, 3);
  b.start("run-2", 88);
  b.frame(2, schema::Propose{"run-1", ""});
  EXPECT_EQ(b.only<PrepareRun>().run.id, "run-1");
  const auto answer = b.only<AnswerStart>();
  EXPECT_EQ(b.only<DropRun>().key, 88u);
  EXPECT_EQ(answer.run_id, "run-2");
  EXPECT_EQ(answer.status.error().message,
            "run run-1 is already STARTING, proposed by node-c; wait for it, or stop it: tgctl stop run-1");
  b.sent<schema::Fail>({0}, 88);
  b.frame(0, schema::Grant{true, ""}, 88);  // crossed with the withdrawal: given back
  b.sent<schema::Fail>({0}, 88);
  EXPECT_EQ(b->current()->id, "run-1");
}

TEST(Membership, ABusyNodeRefusesProposalsAndStarts) {
  Machine b = running_member();
  b.frame(0, schema::Propose{"run-2", ""}, 88);
  const auto vote = b.sent<schema::Vote>({0}, 88);
  EXPECT_FALSE(vote.accepted);
  EXPECT_EQ(vote.message,
            "run run-1 is already RUNNING, proposed by node-c; wait for it, or stop it: tgctl stop run-1");
  b.start("run-3", 99);
  EXPECT_EQ(b.only<AnswerStart>().status.error().message, vote.message);
  EXPECT_EQ(b->current()->id, "run-1");
}

TEST(Membership, TheAbsentAreNamed) {
  Machine a(0, 4, false);
  a.start();
  a->connection(1, true, a.now_ms);
  a.tick(29'999);
  EXPECT_EQ(a.actions(), 0u);
  a.tick(1);
  const auto end = a.only<EndRun>();
  EXPECT_EQ(end.state, RunState::kFailed);
  EXPECT_EQ(end.reason, "node-c, node-d did not connect within 30 s; are they running and reachable?");
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kRunFailed);
  EXPECT_TRUE(a->idle());

  Machine b(1, 2, false);
  b.start();
  b.tick(30'000);
  EXPECT_EQ(b.only<EndRun>().reason, "node-a did not connect within 30 s; is it running and reachable?");
}

TEST(Membership, AClaimWithoutAnAnswerHasADeadline) {
  Machine b(1, 3);
  b.start();
  b.tick(5'000);
  EXPECT_EQ(b.only<EndRun>().reason, "node-a did not grant the right to start a run within 5 s; is it overloaded?");
  b.sent<schema::Fail>({0});
  EXPECT_TRUE(b->idle());
}

TEST(Membership, AClaimIsAskedAgainWhenTheGranterIsBack) {
  Machine b(1, 3);
  b.start();
  b->connection(0, false, b.now_ms);
  b.look();
  EXPECT_EQ(b->state(), RunState::kPending);
  b->connection(0, true, b.now_ms);
  b.look();
  b.sent<schema::Claim>({0});
}

TEST(Membership, AGrantIsGivenBackIfSomebodyLeftMeanwhile) {
  Machine b(1, 3);
  b.start();
  b->connection(2, false, b.now_ms);
  b.frame(0, schema::Grant{true, ""});
  b.sent<schema::Fail>({0});
  EXPECT_EQ(b->state(), RunState::kPending);
  b->connection(2, true, b.now_ms);
  b.look();
  b.sent<schema::Claim>({0});
}

}  // namespace
}  // namespace tg::daemon

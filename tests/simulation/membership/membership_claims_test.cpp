// The right to propose: claims, grants, which claims are refused and why.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Claim;
using schema::Fail;
using schema::RunState;

const std::string kGivenBack = "node-b, refused: the start was withdrawn";

std::string taken(const std::string& state, const std::string& proposer) {
  return "run run-1 is already " + state + ", proposed by " + proposer + "; wait for it, or stop it: tgctl stop run-1";
}

TEST(Membership, OtherSeatsClaimFirst) {
  Machine b(kB, 3);
  EXPECT_EQ(b.start(), "claim run-1 to a");
  EXPECT_EQ(b->state(), RunState::kPending);
  EXPECT_EQ(b.receives(kC, granted()), "") << "not hers to give";
  EXPECT_EQ(b.receives(kA, granted()), "propose run-1 to a c\nprepare run-1 with a b c");
  EXPECT_EQ(b->state(), RunState::kStarting);
}

// A machine that is dead for good: the first of the others grants, and no node asks it.
TEST(Membership, AStartWithoutANodeIsTheOthersAlone) {
  Machine c(kC, 3);
  c.disconnects(kA);
  EXPECT_EQ(c.starts_with({kB, kC}), "claim run-1 to b");
  EXPECT_EQ(c.receives(kA, granted()), "") << "not its to give";
  EXPECT_EQ(c.receives(kB, granted()), "propose run-1 to b\nprepare run-1 with b c");
  const auto proposal = c.sent<schema::Propose>();
  EXPECT_EQ(c.connects(kA), "");
  EXPECT_EQ(c.disconnects(kA), "") << "it has no part in it";
  EXPECT_EQ(c.receives(kA, schema::Goodbye{"node-a was shut down"}, 0, 0), "");
  Machine b(kB, 3);
  b.disconnects(kA);
  EXPECT_EQ(b.receives(kC, Claim{"run-1"}), "grant to c");
  EXPECT_EQ(b.receives(kC, proposal), "prepare run-1 with b c");
  EXPECT_EQ(b.prepares(yes()), "vote yes to c");
  c.receives(kB, yes());
  EXPECT_EQ(c.prepares(yes()), "commit direct to b\nbegin run-1, direct\nanswer run-1: RUNNING\nwrite view 1");
  Machine a(kA, 3);
  EXPECT_EQ(a.receives(kC, proposal), "") << "it is not asked";
}

TEST(Membership, AStartWithoutANodeWaitsForTheOthers) {
  Machine c(kC, 3);
  c.disconnects(kA);
  c.disconnects(kB);
  EXPECT_EQ(c.starts_with({kB, kC}), "");
  EXPECT_EQ(c->awaited(), std::vector<Seat>{kB});
  EXPECT_EQ(c.connects(kB), "claim run-1 to b");
}

TEST(Membership, ARefusedClaimNamesTheRunThatHasTheRight) {
  Machine a = running_proposer();
  EXPECT_EQ(a.receives(kC, Claim{"run-2"}, 88), "refuse to c (key 88): " + taken("RUNNING", "node-a"));
  Machine c(kC, 3);
  EXPECT_EQ(c.start("run-2", 88), "claim run-2 to a (key 88)");
  EXPECT_EQ(c.receives(kA, a.sent<schema::Grant>(), 88),
            "answer run-2: refused: " + taken("RUNNING", "node-a") + "\ndrop (key 88)");
  EXPECT_TRUE(c->idle());
}

TEST(Membership, ClaimsAreGrantedOneAtATimeAndLapse) {
  Machine a(kA, 3);
  EXPECT_EQ(a.receives(kB, Claim{"run-1"}), "grant to b");
  EXPECT_EQ(a.receives(kC, Claim{"run-2"}, 88), "refuse to c (key 88): " + taken("STARTING", "node-b"));
  EXPECT_EQ(a.start("run-3", 99), "answer run-3: refused: " + taken("STARTING", "node-b"));
  EXPECT_EQ(a.receives(kB, Claim{"run-1"}), "grant to b") << "asked again: the same answer";
  EXPECT_EQ(a.waits(5'000), "");
  EXPECT_EQ(a.receives(kC, Claim{"run-2"}, 88), "grant to c (key 88)");
  EXPECT_EQ(a.receives(kB, proposal("run-1")),
            "vote no to b: refused: the right to start run run-1 has lapsed; start it again");
  EXPECT_EQ(a.receives(kC, proposal("run-2"), 88), "prepare run-2 with a b c (key 88)");
}

TEST(Membership, AGrantIsFreedByItsHolderOrByItsLoss) {
  Machine a(kA, 3);
  EXPECT_EQ(a.receives(kB, Claim{"run-1"}), "grant to b");
  EXPECT_EQ(a.receives(kC, Fail{}), "");
  EXPECT_EQ(a.receives(kC, Claim{"run-2"}, 88), "refuse to c (key 88): " + taken("STARTING", "node-b"))
      << "only its holder gives it back";
  EXPECT_EQ(a.receives(kB, Fail{}), "");
  EXPECT_EQ(a.receives(kC, Claim{"run-2"}, 88), "grant to c (key 88)");
  EXPECT_EQ(a.disconnects(kC), "");
  EXPECT_EQ(a.receives(kB, Claim{"run-3"}, 99), "grant to b (key 99)");
}

TEST(Membership, AProposalWithdrawsTheOwnClaim) {
  Machine b(kB, 3);
  EXPECT_EQ(b.start("run-2", 88), "claim run-2 to a (key 88)");
  EXPECT_EQ(b.receives(kC, proposal("run-1")), "fail to a (key 88): " + kGivenBack +
                                                   "\nanswer run-2: refused: " + taken("STARTING", "node-c") +
                                                   "\ndrop (key 88)\nprepare run-1 with a b c");
  EXPECT_EQ(b.receives(kA, granted(), 88), "fail to a (key 88): " + kGivenBack) << "it crossed with the withdrawal";
  EXPECT_EQ(b->current()->id, "run-1");
}

TEST(Membership, ABusyNodeRefusesProposalsAndStarts) {
  Machine b = running_member();
  EXPECT_EQ(b.receives(kA, proposal("run-2"), 88), "vote no to a (key 88): refused: " + taken("RUNNING", "node-c"));
  EXPECT_EQ(b.start("run-3", 99), "answer run-3: refused: " + taken("RUNNING", "node-c"));
  EXPECT_EQ(b->current()->id, "run-1");
}

TEST(Membership, AllMembersSplitABatchByTheWeightsThatTheProposerKnows) {
  Machine a(kA, 3, false);
  EXPECT_EQ(a.start(), "");
  EXPECT_EQ(a.connects(kB, 3), "");
  EXPECT_EQ(a.connects(kC, 10), "propose run-1 split 1:3:10 to b c\nprepare run-1 with a b c split 1:3:10");
  const auto told = a.sent<schema::Propose>();
  Machine b(kB, 3, true, 3);
  EXPECT_EQ(b.receives(kA, told), "prepare run-1 with a b c split 1:3:10") << "whatever it knows of the others itself";
}

TEST(Membership, TheSpeedsInAllVotesSplitABatch) {
  const std::string job = "split = speed\n";
  const auto takes = [](double step_seconds, std::uint32_t local_batch) {
    schema::Vote vote = yes();
    vote.step_seconds = step_seconds;
    vote.local_batch = local_batch;
    return vote;
  };
  Machine a(kA, 3, false);
  EXPECT_EQ(a.start("run-1", kKey, job), "");
  EXPECT_EQ(a.connects(kB, 3), "");
  EXPECT_EQ(a.connects(kC), "propose run-1 split 1:3:1 to b c\nprepare run-1 with a b c split 1:3:1")
      << "what is prepared for";
  EXPECT_EQ(a.receives(kB, takes(0.3, 30)), "");
  EXPECT_EQ(a.prepares(takes(0.4, 10)), "");
  const std::string split = "sharded split 250:1000:333";
  EXPECT_EQ(a.receives(kC, takes(0.3, 10)),
            "commit " + split + " to b c\nbegin run-1, " + split + "\nanswer run-1: RUNNING\nwrite view 1");
  EXPECT_EQ(a->view().weights(), (Per<Rank, std::uint16_t>{250, 1000, 333}));
  Machine b(kB, 3, true, 3);
  b.receives(kA, schema::Propose{"run-1", job, {1, 3, 1}});
  b.prepares(takes(0.3, 30));
  EXPECT_EQ(b.receives(kA, a.sent<schema::Commit>()), "begin run-1, " + split + "\nwrite view 1");
}

TEST(Membership, ANodeRefusesAnotherWeightThanItsOwn) {
  Machine b(kB, 3, true, 2);
  const std::string refusal =
      "vote no to a: refused: node-a does not know yet that node-b has weight 2; start it again";
  EXPECT_EQ(b.receives(kA, proposal("run-1")), refusal);
  EXPECT_TRUE(b->idle());
  EXPECT_EQ(b.receives(kA, schema::Propose{"run-1", "", {1, 2, 1}}), "prepare run-1 with a b c split 1:2:1");
}

TEST(Membership, TheAbsentAreNamed) {
  Machine a(kA, 4, false);
  EXPECT_EQ(a.start(), "");
  EXPECT_EQ(a.connects(kB), "");
  EXPECT_EQ(a.waits(29'999), "");
  EXPECT_EQ(a.waits(1), start_ends("FAILED", "run failed",
                                   "node-c, node-d did not connect within 30 s; are they running and reachable?"));
  EXPECT_TRUE(a->idle());

  Machine b(kB, 2, false);
  EXPECT_EQ(b.start(), "");
  EXPECT_EQ(b.waits(30'000),
            start_ends("FAILED", "run failed", "node-a did not connect within 30 s; is it running and reachable?"));
}

TEST(Membership, AnIncompatiblePeerEndsAStartWithinTwoSeconds) {
  Machine a(kA, 3, false);
  EXPECT_EQ(a.cannot_join(kC, "builds differ"), "") << "no node waits for it";
  EXPECT_EQ(a.start(), "");
  EXPECT_EQ(a.cannot_join(kC, "builds differ"), "") << "it may be a moment's trouble";
  EXPECT_EQ(a.waits(1'499), "");
  EXPECT_EQ(a.cannot_join(kC, "builds differ"), "");
  EXPECT_EQ(a.waits(1), "");
  EXPECT_EQ(a->awaited(), (std::vector<Seat>{kB, kC}));
  EXPECT_EQ(a.cannot_join(kC, "builds differ"),
            start_ends("FAILED", "run failed", "node-c cannot join: builds differ"));
  EXPECT_TRUE(a->idle());
  EXPECT_TRUE(a->awaited().empty());
}

TEST(Membership, AClaimWithoutAnAnswerHasADeadline) {
  Machine b(kB, 3);
  EXPECT_EQ(b.start(), "claim run-1 to a");
  EXPECT_EQ(b.waits(5'000),
            "fail to a: " + kGivenBack + "\n" +
                start_ends("FAILED", "run failed",
                           "node-a did not grant the right to start a run within 5 s; is it overloaded?"));
  EXPECT_TRUE(b->idle());
}

TEST(Membership, AClaimIsAskedAgainWhenTheGranterIsBack) {
  Machine b(kB, 3);
  EXPECT_EQ(b.start(), "claim run-1 to a");
  EXPECT_EQ(b.disconnects(kA), "");
  EXPECT_EQ(b->state(), RunState::kPending);
  EXPECT_EQ(b.connects(kA), "claim run-1 to a");
}

TEST(Membership, AGrantIsReturnedIfAMemberLeftMeanwhile) {
  Machine b(kB, 3);
  EXPECT_EQ(b.start(), "claim run-1 to a");
  EXPECT_EQ(b.disconnects(kC), "");
  EXPECT_EQ(b.receives(kA, granted()), "fail to a: " + kGivenBack);
  EXPECT_EQ(b->state(), RunState::kPending);
  EXPECT_EQ(b.connects(kC), "claim run-1 to a");
}

}  // namespace
}  // namespace tg::daemon

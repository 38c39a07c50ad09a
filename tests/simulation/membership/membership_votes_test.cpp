// From a proposal to its commit or its refusal, and the words that a person reads.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::RunState;

TEST(Membership, OneNodeAloneNeedsNoFrames) {
  Machine a(kA, 1);
  EXPECT_FALSE(a->state());
  a.start();
  EXPECT_EQ(a.only<PrepareRun>().run.id, "run-1");
  EXPECT_EQ(a->state(), RunState::kStarting);
  a.vote(yes());
  EXPECT_EQ(a.only<BeginRun>().choice.commit.exchange, schema::ExchangeKind::kDirect);
  EXPECT_TRUE(a.only<AnswerStart>().status.ok());
  EXPECT_TRUE(a.all<SendFrame>().empty());
  a->finished(RunState::kCompleted, "", a.now_ms);
  a.look();
  EXPECT_EQ(a.only<EndRun>().state, RunState::kCompleted);
  EXPECT_TRUE(a->idle());
}

TEST(Membership, TheFirstSeatProposesAtOnceAndCommitsWithTheLastVote) {
  Machine a(kA, 3, false);
  a.start();
  EXPECT_EQ(a.actions(), 0u);
  EXPECT_EQ(a->state(), RunState::kPending);
  a->connection(kB, true, a.now_ms);
  a.look();
  EXPECT_EQ(a.actions(), 0u);
  a->connection(kC, true, a.now_ms);
  a.look();
  EXPECT_EQ(a.sent<schema::Propose>({kB, kC}).run_id, "run-1");
  EXPECT_EQ(a.only<PrepareRun>().run.key, kKey);
  EXPECT_EQ(a.only<PrepareRun>().view.seat(tg::Rank(2)), kC);
  a.frame(kC, yes());
  a.vote(yes());
  EXPECT_EQ(a.actions(), 0u);
  a.frame(kB, yes());
  EXPECT_EQ(a.sent<schema::Commit>({kB, kC}).exchange, schema::ExchangeKind::kSharded);
  EXPECT_EQ(a.only<BeginRun>().choice.commit.exchange, schema::ExchangeKind::kSharded);
  EXPECT_EQ(a.only<AnswerStart>().token, kToken);
  EXPECT_EQ(a->state(), RunState::kRunning);
}

TEST(Membership, ARefusedVoteFailsTheProposalForAllInItsOwnWords) {
  Machine a = proposing();
  a.vote(yes());
  a.frame(kC, schema::Vote{false, ErrorKind::kInvalidJob, "node-c has no data in /data"});
  const auto fail = a.sent<schema::Fail>({kB, kC});
  EXPECT_EQ(fail.kind, ErrorKind::kInvalidJob);
  EXPECT_EQ(fail.node, "node-c");
  EXPECT_EQ(fail.message, "node-c has no data in /data");
  EXPECT_EQ(a.only<AnswerStart>().status.error().message, fail.message);
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kInvalidJob);
  EXPECT_EQ(a.only<DropRun>().key, kKey);
  EXPECT_TRUE(a.all<EndRun>().empty());

  Machine b = voted();
  b.frame(kC, fail);
  EXPECT_EQ(b.only<DropRun>().key, kKey);
  EXPECT_TRUE(b->idle());
}

TEST(Membership, DifferingHashesNameBothNodesAndBothValues) {
  struct Case {
    std::uint64_t schema::Vote::*hash;
    std::string message;
  };
  const std::vector<Case> cases{
      {&schema::Vote::spec_hash,
       "jobs differ: node-a has 0000000000000001, node-c has 00000000000012ab; run the same build of tgd on every "
       "node"},
      {&schema::Vote::model_hash,
       "models differ: node-a has 0000000000000002, node-c has 00000000000012ab; run the same build of tgd on every "
       "node"},
      {&schema::Vote::data_hash,
       "data differ: node-a has 0000000000000003, node-c has 00000000000012ab; give every node the same files"},
      {&schema::Vote::state_hash,
       "initial states differ: node-a has 0000000000000004, node-c has 00000000000012ab; run the same build of tgd on "
       "every node"},
  };
  for (const Case& one : cases) {
    Machine a = proposing();
    a.vote(yes());
    schema::Vote odd = yes();
    odd.*one.hash = 0x12ab;
    a.frame(kC, odd);
    EXPECT_EQ(a.sent<schema::Fail>({kB, kC}).message, one.message);
    EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kInvalidJob);
    EXPECT_TRUE(a->idle());
  }
}

TEST(Membership, VotesHaveADeadlineThatNamesTheMissing) {
  Machine a = proposing();
  a.frame(kB, yes());
  a.tick(300'000);
  EXPECT_EQ(a.sent<schema::Fail>({kB, kC}).message, "node-a, node-c did not prepare the run within 300 s");
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kTimeout);
}

TEST(Membership, ACommitAfterARefusalBeginsNothing) {
  Machine b = preparing();
  schema::Vote no;
  no.kind = ErrorKind::kInvalidJob;
  no.message = "node-b: no data";
  b.vote(no);
  b.frame(kC, schema::Commit{});  // no honest proposer does that
  EXPECT_TRUE(b.all<BeginRun>().empty());
  EXPECT_EQ(b.sent<schema::Fail>({kC}).node, "node-b");
}

TEST(Membership, AMemberDoesNotWaitForEver) {
  Machine b = voted();
  b.tick(299'999);
  EXPECT_EQ(b.actions(), 0u);
  b.tick(1);
  EXPECT_EQ(b.only<DropRun>().key, kKey);
  b.frame(kC, schema::Commit{});  // too late: the others must know
  const auto fail = b.sent<schema::Fail>({kC});
  EXPECT_EQ(fail.message, "node-b had given up waiting for the run to begin");
  EXPECT_TRUE(b->idle());

  Machine c = running_proposer();
  c.frame(kB, fail);
  EXPECT_EQ(c.only<EndRun>().reason, fail.message);
}

TEST(Membership, TheProposersLossDropsAndAMembersLossFailsTheProposal) {
  for (const bool by_connection : {false, true}) {
    Machine b = by_connection ? voted() : preparing();
    if (by_connection)
      b->connection(kC, false, b.now_ms);
    else
      b->lost(kC, "no sign of life from node-c for 10 s", b.now_ms);
    b.look();
    EXPECT_EQ(b.only<DropRun>().key, kKey);
    EXPECT_TRUE(b.all<EndRun>().empty());
  }
  Machine a = proposing();
  a->connection(kC, false, a.now_ms);
  a.look();
  EXPECT_EQ(a.sent<schema::Fail>({kB, kC}).message, "node-a lost the connection to node-c");
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kUnreachable);
}

TEST(Membership, AVoteWaitsForTheConnectionsAndThenSaysNo) {
  Machine b = preparing();
  b->connection(kA, false, b.now_ms);
  b.vote(yes());
  EXPECT_EQ(b.actions(), 0u);
  Machine waits = b;
  waits->connection(kA, true, waits.now_ms);
  waits.look();
  EXPECT_TRUE(waits.sent<schema::Vote>({kC}).accepted);

  b.tick(5'000);
  const auto vote = b.sent<schema::Vote>({kC});
  EXPECT_FALSE(vote.accepted);
  EXPECT_EQ(vote.message, "node-b is not connected to node-a");
}

TEST(Membership, AVoteIsTakenBackAndTheVerdictCarriedOut) {
  Machine b = voted();
  b->connection(kA, false, b.now_ms);
  b.look();
  const auto vote = b.sent<schema::Vote>({kC});
  EXPECT_FALSE(vote.accepted);
  EXPECT_EQ(vote.message, "node-b lost the connection to node-a");
  Machine in_time = proposing();
  in_time.frame(kC, vote);
  EXPECT_TRUE(in_time->idle());
  // The commit had left already: the run begins here and ends at once, for all.
  b.frame(kC, schema::Commit{});
  EXPECT_EQ(b.all<BeginRun>().size(), 1u);
  EXPECT_EQ(b.sent<schema::Fail>({kA, kC}).message, vote.message);
  EXPECT_EQ(b.only<EndRun>().reason, vote.message);
}

TEST(Membership, AFailThatOvertakesTheCommitIsNotForgotten) {
  Machine b = voted();
  b.frame(kA, schema::Fail{ErrorKind::kRunFailed, "node-a", "", "node-a is out of memory"});
  EXPECT_EQ(b.actions(), 0u);
  b.frame(kC, schema::Commit{});
  EXPECT_EQ(b.only<EndRun>().reason, "node-a is out of memory");
}

TEST(Membership, ARefusedRunThatTheJobTextBreaksIsNotCommitted) {
  Machine a(kA, 1);
  a->start(kToken, {kKey, "run-1", "steps = many\n", 30'000}, a.now_ms);
  a.vote(yes());
  EXPECT_FALSE(a.only<AnswerStart>().status.ok());
  EXPECT_TRUE(a->idle());
}

}  // namespace
}  // namespace tg::daemon

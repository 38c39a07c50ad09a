// The votes from a proposal to its commit or its refusal, and the messages that a person reads.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Commit;
using schema::RunState;
using schema::Vote;

TEST(Membership, OneNodeAloneNeedsNoFrames) {
  Machine a(kA, 1);
  EXPECT_FALSE(a->state());
  EXPECT_EQ(a.start(), "prepare run-1 with a");
  EXPECT_EQ(a->state(), RunState::kStarting);
  EXPECT_EQ(a.prepares(yes()), "begin run-1, direct\nanswer run-1: RUNNING\nwrite view 1");
  EXPECT_EQ(a.finishes(RunState::kCompleted, ""), "save run-1: COMPLETED");
  EXPECT_EQ(a.saves(an_end(RunState::kCompleted, 1)), "end run-1: COMPLETED (a saved)");
  EXPECT_TRUE(a->idle());
}

TEST(Membership, TheFirstSeatProposesAtOnceAndCommitsWithTheLastVote) {
  Machine a(kA, 3, false);
  EXPECT_EQ(a.start(), "");
  EXPECT_EQ(a->state(), RunState::kPending);
  EXPECT_EQ(a.connects(kB), "");
  EXPECT_EQ(a.connects(kC), "propose run-1 to b c\nprepare run-1 with a b c");
  EXPECT_EQ(a.receives(kC, yes()), "");
  EXPECT_EQ(a.prepares(yes()), "");
  EXPECT_EQ(a.receives(kB, yes()), "commit sharded to b c\nbegin run-1, sharded\nanswer run-1: RUNNING\nwrite view 1");
  EXPECT_EQ(a->state(), RunState::kRunning);
}

TEST(Membership, ARefusedVoteFailsTheProposalForAllWithItsReason) {
  Machine a = proposing();
  EXPECT_EQ(a.prepares(yes()), "");
  EXPECT_EQ(a.receives(kC, Vote{false, ErrorKind::kInvalidJob, "node-c has no data in /data"}),
            proposal_fails("node-c", "invalid job", "node-c has no data in /data"));
  Machine b = voted();
  EXPECT_EQ(b.receives(kC, a.sent<schema::Fail>()), "drop");
  EXPECT_TRUE(b->idle());
}

TEST(Membership, DifferingHashesNameBothNodesAndBothValues) {
  struct Case {
    std::uint64_t Vote::*hash;
    std::string message;
  };
  const std::vector<Case> cases{
      {&Vote::spec_hash,
       "jobs differ: node-a has 0000000000000001, node-c has 00000000000012ab; run the same build of tgd on every "
       "node"},
      {&Vote::model_hash,
       "models differ: node-a has 0000000000000002, node-c has 00000000000012ab; run the same build of tgd on every "
       "node"},
      {&Vote::data_hash,
       "data differ: node-a has 0000000000000003, node-c has 00000000000012ab; give every node the same files"},
      {&Vote::state_hash,
       "initial states differ: node-a has 0000000000000004, node-c has 00000000000012ab; run the same build of tgd on "
       "every node; if the job sets initial, give every node the same file"},
  };
  for (const Case& one : cases) {
    Machine a = proposing();
    EXPECT_EQ(a.prepares(yes()), "");
    Vote odd = yes();
    odd.*one.hash = 0x12ab;
    EXPECT_EQ(a.receives(kC, odd), proposal_fails("node-c", "invalid job", one.message));
    EXPECT_TRUE(a->idle());
  }
}

TEST(Membership, TheFirstVoteOfANodeCounts) {
  Machine a = proposing();
  EXPECT_EQ(a.receives(kB, yes()), "");
  Vote other = yes();
  other.data_hash = 0x12ab;
  EXPECT_EQ(a.receives(kB, other), "");
  EXPECT_EQ(a.prepares(yes()), "");
  EXPECT_EQ(a.receives(kC, yes()), "commit sharded to b c\nbegin run-1, sharded\nanswer run-1: RUNNING\nwrite view 1");
}

// The nodes that have the files say which ones differ, so the verdict waits for the proposer's own names.
TEST(Membership, DifferingDataNameCountsAndTheFile) {
  engine::NamedSums here, there;
  for (const char* name : {"a.png", "b.png", "c.png"}) {
    here.add(name, 1, 100);
    there.add(name, *name == 'b' ? 2 : 1, 100);
  }
  there.add("d.png", 1, 100);
  Vote own = yes(), theirs = yes();
  own.message = here.sums().text();
  theirs.message = there.sums().text();
  theirs.data_hash = 0x12ab;
  Machine a = proposing();
  EXPECT_EQ(a.receives(kC, theirs), "");
  EXPECT_EQ(a.receives(kB, own), "") << "its own names are not known yet";
  EXPECT_EQ(a.prepares(own, here.names()),
            proposal_fails("node-c", "invalid job",
                           "data differ: node-a has 0000000000000003 (3 files of 300 bytes, 0 + 0 samples), node-c has "
                           "00000000000012ab (4 files of 400 bytes, 0 + 0 samples); b.png differs (at least 2 files "
                           "differ); give every node the same files"));
}

TEST(Membership, AProposalIsMadeAnewWhenALinkGetsAnotherKey) {
  Machine a = proposing();
  EXPECT_EQ(a.waits(2'000), "");
  EXPECT_EQ(a.rekeys(kC),
            "fail to b c: node-c, unreachable: the link between node-a and node-c gets another cluster key\ndrop\n"
            "start run-1 anew within 28000 ms");
  EXPECT_TRUE(a->idle());
  Machine b = voted();
  EXPECT_EQ(b.rekeys(kA), "") << "node-a has not voted yet, and does so when it is connected to all";
  EXPECT_EQ(b.rekeys(kC), "drop");
  Machine late = proposing();
  EXPECT_EQ(late.waits(30'000), "propose run-1 to b c");
  EXPECT_EQ(late.rekeys(kC), proposal_fails("node-c", "unreachable", "node-a lost the connection to node-c"))
      << "longer than its start-timeout";
}

TEST(Membership, VotesHaveADeadlineThatNamesTheMissing) {
  Machine a = proposing();
  EXPECT_EQ(a.receives(kB, yes()), "");
  EXPECT_EQ(a.waits(300'000),
            proposal_fails("node-a", "timeout", "node-a, node-c made no progress in preparing the run for 300 s"));
}

// A set of a million pictures is read for longer than that.
TEST(Membership, AMemberThatMakesProgressIsWaitedFor) {
  Machine a = proposing();
  EXPECT_EQ(a.prepares(yes()), "");
  EXPECT_EQ(a.receives(kB, yes()), "");
  Machine preparing_b = preparing(), voted_b = voted();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(a.makes_progress(kC), "");
    EXPECT_EQ(a.waits(14'000), "propose run-1 to b c");
    for (Machine* b : {&preparing_b, &voted_b}) {
      EXPECT_EQ(b->makes_progress(kA), "");
      EXPECT_EQ(b->waits(14'000), "");
      EXPECT_EQ(b->receives(kC, a.sent<schema::Propose>()), "");
    }
  }
  EXPECT_EQ(a.waits(280'000), "propose run-1 to b c");
  EXPECT_EQ(a.makes_progress(kB), "") << "it has voted: no node waits for it";
  EXPECT_EQ(a.waits(6'000),
            proposal_fails("node-c", "timeout", "node-c made no progress in preparing the run for 300 s"));
  EXPECT_EQ(preparing_b.stops(), "vote no to c: refused: run run-1 was stopped at node-b before it began");
  EXPECT_EQ(preparing_b.makes_progress(kA), "");
  EXPECT_EQ(preparing_b.receives(kC, a.sent<schema::Fail>()), "drop");
}

TEST(Membership, ACommitAfterARefusalBeginsNothing) {
  Machine b = preparing();
  EXPECT_EQ(b.prepares(Vote{false, ErrorKind::kInvalidJob, "node-b: no data"}),
            "vote no to c: invalid job: node-b: no data");
  EXPECT_EQ(b.receives(kC, Commit{}), "fail to c: node-b, run failed: node-b had given up waiting for the run to begin")
      << "no honest proposer commits then";
}

TEST(Membership, AProposerRepeatsItsProposal) {
  Machine a = proposing();
  EXPECT_EQ(a.waits(4'999), "");
  EXPECT_EQ(a.waits(1), "propose run-1 to b c");
  EXPECT_EQ(a.waits(4'999), "");
  EXPECT_EQ(a.waits(1), "propose run-1 to b c");
  const auto again = a.sent<schema::Propose>();
  Machine b = voted();
  for (int i = 0; i < 29; ++i) {
    EXPECT_EQ(b.waits(10'000), "") << i;
    EXPECT_EQ(b.receives(kC, again), "") << "it votes once";
  }
  EXPECT_EQ(b->state(), RunState::kStarting) << "another member may still prepare";
  EXPECT_EQ(b.waits(10'000), "drop") << "but not for ever";
}

TEST(Membership, AMemberDoesNotWaitForAProposerThatIsStuck) {
  for (Machine b : {preparing(), voted()}) {
    EXPECT_EQ(b.waits(14'999), "");
    EXPECT_EQ(b.receives(kA, proposal("run-1")), "") << "not the proposer";
    EXPECT_EQ(b.waits(1), "drop");
    EXPECT_EQ(b.receives(kC, Commit{}),
              "fail to c: node-b, run failed: node-b had given up waiting for the run to begin")
        << "too late: the others must know";
    EXPECT_TRUE(b->idle());
    EXPECT_EQ(running_proposer().receives(kB, b.sent<schema::Fail>()),
              "save run-1: FAILED: node-b had given up waiting for the run to begin");
  }
}

TEST(Membership, TheProposersLossDropsAndAMembersLossFailsTheProposal) {
  EXPECT_EQ(preparing().loses(kC, "no sign of life from node-c for 10 s"), "drop");
  EXPECT_EQ(voted().disconnects(kC), "drop");
  EXPECT_EQ(proposing().disconnects(kC),
            proposal_fails("node-c", "unreachable", "node-a lost the connection to node-c"));
}

TEST(Membership, AVoteWaitsForTheConnectionsAndThenRefuses) {
  Machine b = preparing();
  EXPECT_EQ(b.disconnects(kA), "");
  EXPECT_EQ(b.prepares(yes()), "");
  Machine in_time = b;
  EXPECT_EQ(in_time.connects(kA), "vote yes to c");
  EXPECT_EQ(b.waits(5'000), "vote no to c: unreachable: node-b is not connected to node-a");
}

TEST(Membership, AVoteIsWithdrawnAndTheCommitHolds) {
  const std::string lost = "node-b lost the connection to node-a";
  Machine b = voted();
  EXPECT_EQ(b.disconnects(kA), "vote no to c: unreachable: " + lost);
  Machine in_time = proposing();
  EXPECT_EQ(in_time.receives(kC, b.sent<Vote>()), proposal_fails("node-c", "unreachable", lost));
  EXPECT_TRUE(in_time->idle());
  // The commit had left already: the run begins here, and it costs a member.
  EXPECT_EQ(b.receives(kC, Commit{}), "begin run-1, direct\nwrite view 1\nsuspect a to a c: " + lost +
                                          "\nwrite view 1, promised 1b\nseal\nprepare 1b to a c");
}

TEST(Membership, AFailThatOvertakesTheCommitIsNotForgotten) {
  Machine b = voted();
  EXPECT_EQ(b.receives(kA, schema::Fail{ErrorKind::kRunFailed, "node-a", "", "node-a is out of memory"}), "");
  EXPECT_EQ(b.receives(kC, Commit{}),
            "begin run-1, direct\nwrite view 1\n" + run_fails("node-a", "run failed", "node-a is out of memory"));
}

TEST(Membership, ARefusedRunThatTheJobTextBreaksIsNotCommitted) {
  Machine a(kA, 1);
  EXPECT_EQ(a.start("run-1", kKey, "steps = many\n"), "prepare run-1 with a");
  EXPECT_EQ(a.prepares(yes()),
            "answer run-1: usage: job:1: steps: \"many\" is not a whole number from 1 to 4294967294\ndrop");
  EXPECT_TRUE(a->idle());
}

}  // namespace
}  // namespace tg::daemon

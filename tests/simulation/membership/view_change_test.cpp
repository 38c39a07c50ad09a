// One change of the view, as transcripts: what a voter does at each event, and in which order.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Accept;
using schema::Accepted;
using schema::Decide;
using schema::Goodbye;
using schema::Nack;
using schema::Prepare;
using schema::Promise;
using schema::Suspect;

const std::string kNoC = "node-a lost the connection to node-c";

// Node-a of three coordinates, for it has lost node-c.
Machine leading(std::size_t members = 3) {
  Machine a = running(kA, members);
  a.disconnects(kC);
  return a;
}
// Node-b of three has promised to node-a.
Machine promised() {
  Machine b = running(kB, 3);
  b.receives(kA, Prepare{ballot(1, kA)});
  return b;
}

TEST(ViewChange, AJuniorThatDiesIsEvicted) {
  Machine a = running(kA, 3), b = running(kB, 3);
  EXPECT_EQ(a.disconnects(kC), "suspect c to b c: " + kNoC +
                                   "\nwrite view 1, promised 1a"
                                   "\nseal"
                                   "\nprepare 1a to b c");
  EXPECT_EQ(b.has_committed(13).receives(kA, a.sent<Prepare>()),
            "write view 1, promised 1a"
            "\nseal"
            "\npromise 1a to a: step 13, reaches a c");
  // All nodes that it hears have promised.
  EXPECT_EQ(a.receives(kB, b.sent<Promise>()),
            "accept 1a to b c: view 2 of a b from 12"
            "\nwrite view 1, promised 1a, accepted 1a"
            "\nseal");
  EXPECT_EQ(b.receives(kA, a.sent<Accept>()),
            "write view 1, promised 1a, accepted 1a"
            "\nseal"
            "\naccepted 1a to a");
  EXPECT_EQ(a.receives(kB, b.sent<Accepted>()),
            "write view 2"
            "\ndecide to b c: view 2 of a b from 12"
            "\ninstall view 2 of a b from 12");
  EXPECT_EQ(b.receives(kA, a.sent<Decide>()),
            "write view 2"
            "\ndecide to a c: view 2 of a b from 12"
            "\ninstall view 2 of a b from 12");
  EXPECT_EQ(a.sent<Decide>().view.why, kNoC);
  EXPECT_EQ(a->view().number(), 2u);
  EXPECT_EQ(a.vote().view, a.sent<Decide>().view);
  EXPECT_EQ(a->state(), schema::RunState::kRunning);
  // What is still in flight changes nothing.
  EXPECT_EQ(b.receives(kA, a.sent<Decide>()), "");
  EXPECT_EQ(a.receives(kB, accepted(kB, ballot(1, kA))), "decide to b: view 2 of a b from 12");
}

// Node-b of node-a, -b and -c; node-d is in no view that it knows.
Machine without_d() {
  Machine b(kB, 4);
  b.receives(kA, schema::Propose{"run-1", "steps = 5\n", {1, 1, 1, 1}, {}, {0, 1, 2}});
  b.prepares(yes());
  schema::Commit commit;
  commit.members = first_view(3).members;
  b.receives(kA, commit);
  return b;
}

TEST(ViewChange, TheWordOfANodeOfNoKnownViewIsAHint) {
  const std::string asks = "\ndecide to a c (view 0): view 1 of a b c from 0";
  Machine b = without_d();
  EXPECT_EQ(
      b.receives(kD, Decide{next_view({kD}, 12, 5)}, kKey, 4),
      "hint: node-d says that another view was decided, but is in no view that node-b knows; asking node-a, node-c" +
          asks);
  EXPECT_EQ(b.receives(kD, Decide{next_view({kD}, 12, 5)}, kKey, 4), "") << "asked not long ago";
  b.waits(1'000);
  EXPECT_EQ(
      b.receives(kD, an_end(schema::RunState::kCompleted, 40)),
      "hint: node-d says that the run has ended, but is in no view that node-b knows; asking node-a, node-c" + asks);
  EXPECT_EQ(b->state(), schema::RunState::kRunning);
  // Where that is known it is answered.
  Machine a = without_d();
  a.receives(kA, Prepare{ballot(1, kA)});
  a.receives(kA, Decide{next_view({kA, kB, kC})});
  EXPECT_EQ(a.receives(kC, Decide{first_view(3)}, kKey, 0), "decide to c: view 2 of a b c from 12");
  EXPECT_EQ(b.receives(kA, Decide{next_view({kB, kD}, 0, 3)}, kKey, 2).find("write view 3"), 0u);
  EXPECT_EQ(b.vote().view.number, 3u);
  // With nobody heard it is paused, and says what it has heard of whom.
  Machine alone = without_d();
  alone.disconnects(kA);
  alone.disconnects(kC);
  alone.receives(kD, Decide{next_view({kD}, 12, 5)}, kKey, 4);
  EXPECT_EQ(alone->state(), schema::RunState::kPaused);
  EXPECT_NE(
      alone->pause_reason().find("; node-d says that another view was decided, but is in no view that node-b knows"),
      std::string::npos)
      << alone->pause_reason();
  alone.receives_heartbeat(kD, 5, {2, 78, {}});
  EXPECT_EQ(alone->state(), schema::RunState::kPaused) << "another lineage";
}

TEST(ViewChange, ReportsTheTimesOfItsPhases) {
  Machine b = running(kB, 3);
  b.waits(100);
  b.receives(kA, Suspect{2, kNoC});
  b.waits(30);
  b.receives(kA, Prepare{ballot(1, kA)});
  b.waits(20);
  b.receives(kA, Decide{next_view({kA, kB})});
  const ChangeTimes times = b.installed();
  EXPECT_EQ(times.noticed_ms, 1'100u);
  EXPECT_EQ(times.promised_ms, 1'130u);
  EXPECT_EQ(times.decided_ms, 1'150u);
}

TEST(ViewChange, ASuspicionIsNotForwarded) {
  Machine a = running(kA, 3), b = running(kB, 3);
  EXPECT_EQ(b.receives(kC, Suspect{2, "node-c is stuck"}), "") << "node-a leads";
  EXPECT_EQ(b.receives(kC, Suspect{2, "node-c is stuck"}), "");
  EXPECT_EQ(a.receives(kC, Suspect{2, "node-c is stuck"}), "write view 1, promised 1a\nseal\nprepare 1a to b c");
  EXPECT_EQ(running(kA, 3).receives(kC, Suspect{7, "nobody"}), "");
}

TEST(ViewChange, ACoordinatorThatDiesBeforeItsPrepareIsReplaced) {
  Machine b = running(kB, 3);
  EXPECT_EQ(b.disconnects(kA),
            "suspect a to a c: node-b lost the connection to node-a"
            "\nwrite view 1, promised 1b"
            "\nseal"
            "\nprepare 1b to a c");
  // Node-c does not know yet that node-a is gone. After a second it coordinates a ballot itself, unless it has heard of
  // node-b.
  Machine c = running(kC, 3);
  EXPECT_EQ(c.receives(kB, Suspect{0, "node-b lost the connection to node-a"}), "");
  EXPECT_EQ(c.waits(1'999), "") << "two are more senior";
  Machine late = c;
  EXPECT_EQ(late.waits(1), "write view 1, promised 1c\nseal\nprepare 1c to a b");
  EXPECT_EQ(c.receives(kB, Prepare{ballot(1, kB)}),
            "write view 1, promised 1b\nseal\npromise 1b to b: step 12, reaches a b");
}

TEST(ViewChange, ACoordinatorThatDiesAfterItsAcceptIsReplaced) {
  Machine b = promised();
  b.receives(kA, Accept{ballot(1, kA), next_view({kA, kB})});
  EXPECT_EQ(b.disconnects(kA),
            "suspect a to a c: node-b lost the connection to node-a"
            "\nwrite view 1, promised 2b, accepted 1a"
            "\nseal"
            "\nprepare 2b to a c");
  // What may be decided is decided, though node-a is gone: and then it is lost.
  EXPECT_EQ(b.receives(kC, promise(kC, ballot(2, kB))),
            "accept 2b to a c: view 2 of a b from 12"
            "\nwrite view 1, promised 2b, accepted 2b"
            "\nseal");
  EXPECT_EQ(b.receives(kC, accepted(kC, ballot(2, kB))),
            "write view 2"
            "\ndecide to a c: view 2 of a b from 12"
            "\ninstall view 2 of a b from 12"
            "\nsuspect a to a (view 2): node-b lost the connection to node-a"
            "\nwrite view 2, promised 1b"
            "\nseal");
  EXPECT_EQ(b->state(), schema::RunState::kPaused) << "one of two, and the junior";
}

TEST(ViewChange, ADecideSurvivesItsCoordinator) {
  Machine b = promised();
  EXPECT_EQ(b.receives(kA, Decide{next_view({kA, kB})}),
            "write view 2"
            "\ndecide to a c: view 2 of a b from 12"
            "\ninstall view 2 of a b from 12");
  // Node-c has not heard it, and asks in the old view.
  EXPECT_EQ(b.receives(kC, Prepare{ballot(2, kC)}), "decide to c: view 2 of a b from 12");
  EXPECT_EQ(b.receives(kC, Prepare{ballot(2, kC)}), "") << "one answer in 100 ms";
  b.waits(100);
  EXPECT_EQ(b.receives_heartbeat(kC, 1), "decide to c: view 2 of a b from 12");
  EXPECT_EQ(b.receives_heartbeat(kC, 2), "");
  b.disconnects(kC);
  EXPECT_EQ(b.connects(kC), "decide to c: view 2 of a b from 12") << "first on a new connection";
}

// None of these can be decided by the rules of this build.
TEST(ViewChange, ADecideBeyondOneUndoEvictsTheNode) {
  const auto left = [](std::uint64_t start) {
    const std::string from = std::to_string(start), next = "view 2 of a b from " + from;
    return "write view 2\ndecide to a c: " + next + "\nleave for " + next +
           "\nsave run-1: INTERRUPTED: node-b was evicted: it cannot go on from step " + from +
           ", as was decided; do all nodes run the same build?; the run continues without it";
  };
  for (const std::uint64_t start : {0u, 10u, 13u}) {
    Decide decide{next_view({kA, kB})};
    decide.view.start = start;
    Machine b = promised();
    EXPECT_EQ(b.receives(kA, decide), left(start));
  }
  Machine b = running(kB, 3);
  EXPECT_EQ(b.receives(kA, Decide{next_view({kA, kB})}), left(12)) << "it has promised nothing";
}

// An old vote, which nobody alive could refuse, decided another view 2 in a part that was cut off.
TEST(ViewChange, OfTwoViewsOfOneNumberTheHigherContinues) {
  Machine b = promised(), c = promised();
  b.receives(kA, Decide{next_view({kA, kB})});
  EXPECT_EQ(b.receives(kC, Decide{next_view({kB, kC})}),
            "write view 2"
            "\ndecide to a c: view 2 of b c from 12"
            "\nleave for view 2 of b c from 12"
            "\nsave run-1: INTERRUPTED: node-b was evicted: ; the run continues without it");
  c.receives(kA, Decide{next_view({kA, kB})});
  EXPECT_EQ(c.receives(kC, Decide{next_view({kA, kC}, 11)}), "decide to c: view 2 of a b from 12") << "it is lower";
}

TEST(ViewChange, TwoMembersThatDieAtOnceAreEvicted) {
  Machine a = running(kA, 4);
  a.disconnects(kC);
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA))), "") << "it hears node-d";
  EXPECT_EQ(a.disconnects(kD),
            "suspect d to b c d: node-a lost the connection to node-d"
            "\naccept 1a to b c d: view 2 of a b from 12"
            "\nwrite view 1, promised 1a, accepted 1a"
            "\nseal");
}

TEST(ViewChange, AReachableVoterIsWaitedForUpToPeerTimeout) {
  Machine a = running(kA, 4);
  a.disconnects(kC);
  a.receives(kB, promise(kB, ballot(1, kA)));
  for (int second = 1; second < 10; ++second) EXPECT_EQ(a.waits(1'000), "prepare 1a to b c d\nseal");
  EXPECT_EQ(a.waits(1'000).find("prepare 1a to b c d\nseal\naccept 1a to b c d: view 2 of a b from 12"), 0u);
}

TEST(ViewChange, HalfWithTheSeniorIsAQuorum) {
  Machine a = running(kA, 4);
  a.disconnects(kC);
  a.disconnects(kD);
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA))).find("accept 1a"), 0u);
}

TEST(ViewChange, HalfWithoutTheSeniorIsNoQuorum) {
  Machine c = running(kC, 4);
  c.disconnects(kA);
  c.disconnects(kB);
  EXPECT_EQ(c.receives(kD, promise(kD, ballot(1, kC))), "");
  EXPECT_EQ(c.waits(1'000), "seal") << "it asks no node: it may be deaf";
  EXPECT_EQ(c->state(), schema::RunState::kPaused);
  EXPECT_EQ(c.connects(kB), "prepare 1c to a b d\nseal") << "whom do they hear now?";
  EXPECT_EQ(c->state(), schema::RunState::kRunning);
  EXPECT_EQ(c.receives(kB, promise(kB, ballot(1, kC))).find("accept 1c to a b d: view 2 of b c d from 12"), 0u);
}

TEST(ViewChange, TheSeniorOfTwoContinuesAlone) {
  Machine a = running(kA, 2);
  EXPECT_EQ(a.disconnects(kB),
            "suspect b to b: node-a lost the connection to node-b"
            "\nwrite view 1, promised 1a"
            "\nseal"
            "\nprepare 1a to b"
            "\naccept 1a to b: view 2 of a from 12"
            "\nwrite view 1, promised 1a, accepted 1a"
            "\nseal"
            "\nwrite view 2"
            "\ndecide to b: view 2 of a from 12"
            "\ninstall view 2 of a from 12");
}

TEST(ViewChange, TheJuniorOfTwoWaitsForTheSeniorsVote) {
  Machine b = running(kB, 2), a = restarted(kA, 2);
  EXPECT_EQ(b.disconnects(kA),
            "suspect a to a: node-b lost the connection to node-a"
            "\nwrite view 1, promised 1b"
            "\nseal");
  EXPECT_EQ(b.connects(kA), "prepare 1b to a\nseal");
  EXPECT_EQ(a.connects(kB), "suspect a to b: node-a has no state of the run in memory");
  EXPECT_EQ(b.receives(kA, a.sent<Suspect>()), "");
  EXPECT_EQ(a.receives(kB, Prepare{ballot(1, kB)}), "write view 1, promised 1b\npromise 1b to b: no state");
  EXPECT_EQ(b.receives(kA, a.sent<Promise>()),
            "accept 1b to a: view 2 of b from 12"
            "\nwrite view 1, promised 1b, accepted 1b"
            "\nseal");
  EXPECT_EQ(a.receives(kB, b.sent<Accept>()), "write view 1, promised 1b, accepted 1b\naccepted 1b to b");
  EXPECT_EQ(b.receives(kA, a.sent<Accepted>()).find("write view 2\ndecide to a: view 2 of b from 12"), 0u);
}

TEST(ViewChange, ARestartedVoterKeepsItsPromise) {
  Machine a(kA, 3, false);
  a.remembers_voter({kKey, first_view(3), ballot(3, kC), ballot(2, kB), next_view({kB, kC})});
  EXPECT_TRUE(a->idle());
  EXPECT_EQ(a.receives(kB, Prepare{ballot(2, kB)}), "nack 3c to b");
  EXPECT_EQ(a.receives(kC, Prepare{ballot(3, kC)}), "promise 3c to c: no state, accepted 2b: view 2 of b c from 12")
      << "it was written before";
  EXPECT_EQ(a.waits(60'000), "") << "it does not lead";
  EXPECT_EQ(a.receives(kC, Decide{next_view({kB, kC})}), "write view 2\ndecide to b c: view 2 of b c from 12");
  EXPECT_EQ(a.receives(kB, Prepare{ballot(2, kB)}), "decide to b: view 2 of b c from 12");
}

// Its process in the new view is one that is gone.
TEST(ViewChange, ARestartedMemberReportsThatItHasNoState) {
  Machine c = restarted(kC, 3);
  EXPECT_EQ(c.receives(kA, Decide{next_view({kA, kC})}),
            "write view 2"
            "\ndecide to a b: view 2 of a c from 12"
            "\nsuspect c to a (view 2): node-c has no state of the run in memory");
}

TEST(ViewChange, ARunWithAFinalOutcomeHasNoVoter) {
  const auto past = [](schema::RunState state) {
    PastRun run{"run-1", Per<Seat, bool>(3, true), {}};
    run.end.truth = an_end(state, 90);
    run.end.members.assign(3, std::nullopt);
    run.end.members[kB] = run.end.truth;
    return run;
  };
  Machine b(kB, 3, false);
  b.remembers(past(schema::RunState::kCompleted));
  b.remembers_voter({kKey, first_view(3), {}, {}, {}});
  EXPECT_EQ(b.receives(kA, Prepare{ballot(1, kA)}), "ended to a: COMPLETED, saved");

  Machine other(kB, 3, false);
  other.remembers(past(schema::RunState::kInterrupted));
  other.remembers_voter({kKey, first_view(3), {}, {}, {}});
  Machine resumed = other;
  EXPECT_EQ(other.receives(kA, Prepare{ballot(1, kA)}), "write view 1, promised 1a\npromise 1a to a: no state");
  other.receives(kC, an_end(schema::RunState::kCompleted, 80));
  EXPECT_EQ(other.receives(kA, Prepare{ballot(2, kA)}), "ended to a: COMPLETED, saved");

  // A later beginning of the same run: the key is another one.
  for (const Seat seat : {kA, kC}) resumed.connects(seat);
  schema::Resume resume;
  resumed.receives(kA, to_go_on(resume), 78);
  EXPECT_EQ(resumed.receives(kA, Prepare{ballot(1, kA)}), "write view 1, promised 1a\npromise 1a to a: no state")
      << "not yet";
}

TEST(ViewChange, ANackEndsABallot) {
  Machine a = leading();
  EXPECT_EQ(a.receives(kB, Nack{ballot(3, kB)}), "");
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA))), "") << "its ballot is over";
  Machine later = a;
  EXPECT_EQ(a.receives(kB, Prepare{ballot(3, kB)}),
            "write view 1, promised 3b\nseal\npromise 3b to b: step 12, reaches b");
  // Nothing comes of it: 1 s for each ballot, doubled.
  EXPECT_EQ(later.waits(7'999), "");
  EXPECT_EQ(later.waits(1), "write view 1, promised 4a\nseal\nprepare 4a to b c");
}

TEST(ViewChange, APromisedVoterTakesOverFromASilentCoordinator) {
  Machine b = promised();
  EXPECT_EQ(b.waits(1'000), "");
  EXPECT_EQ(b.receives(kA, Prepare{ballot(1, kA)}), "seal\npromise 1a to a: step 12, reaches a c") << "written before";
  EXPECT_EQ(b.waits(1'999), "");
  EXPECT_EQ(b.waits(1), "write view 1, promised 2b\nseal\nprepare 2b to a c");
}

TEST(ViewChange, TheHigherOfTwoBallotsWins) {
  Machine a = leading(), b = running(kB, 3);
  b.disconnects(kA);
  EXPECT_EQ(a.receives(kB, b.sent<Prepare>()), "write view 1, promised 1b\nseal\npromise 1b to b: step 12, reaches b");
  EXPECT_EQ(b.receives(kA, Prepare{ballot(1, kA)}), "nack 1b to a");
  EXPECT_EQ(a.waits(1'000), "") << "it has given up its own";
}

TEST(ViewChange, AnAcceptedValueIsAdopted) {
  Machine b = running(kB, 3);
  b.disconnects(kA);
  Promise promise_of_c = promise(kC, ballot(1, kB));
  promise_of_c.accepted_in = ballot(1, kA);
  promise_of_c.accepted = next_view({kA, kC}, 11);
  EXPECT_EQ(b.receives(kC, promise_of_c).find("accept 1b to a c: view 2 of a c from 11"), 0u);
  EXPECT_EQ(b.receives(kC, accepted(kC, ballot(1, kB))),
            "write view 2"
            "\ndecide to a c: view 2 of a c from 11"
            "\nleave for view 2 of a c from 11"
            "\nsave run-1: INTERRUPTED: node-b was evicted: ; the run continues without it");
}

TEST(ViewChange, AnAcceptFreezesAVoterWithoutAPromise) {
  Machine b = running(kB, 3);
  EXPECT_EQ(b.receives(kA, Accept{ballot(1, kA), next_view({kA, kB})}),
            "write view 1, promised 1a, accepted 1a\nseal\naccepted 1a to a");
  EXPECT_EQ(b.receives(kA, Accept{ballot(1, kA), next_view({kA, kB})}), "seal\naccepted 1a to a") << "again";
  EXPECT_EQ(b.receives(kC, Accept{ballot(1, kA), next_view({kB, kC})}), "") << "not its ballot";
  EXPECT_EQ(b.receives(kC, Accept{ballot(1, kC), next_view({kB, kC}, 12, 3)}), "") << "not the next view";
}

// A process whose state directory was restored from a snapshot began with fewer writes than its seat has told.
TEST(ViewChange, AnOldVoteIsNone) {
  Machine a = leading();
  Promise told = promise(kB, ballot(1, kA));
  told.vote = 7;
  EXPECT_EQ(a.receives(kB, told).find("accept 1a"), 0u);
  Accepted restored = accepted(kB, ballot(1, kA));
  restored.incarnation += 1;
  restored.votes_before = restored.vote = 6;
  EXPECT_EQ(a.receives(kB, restored),
            "suspect b to b c: the vote of node-b is old: 6, but it has told 7; was its state-dir restored or copied?");
  EXPECT_NE(a->pause_reason().find("(node-b: the vote of node-b is old: 6, but it has told 7;"), std::string::npos)
      << a->pause_reason();
  restored.votes_before = restored.vote = 7;
  EXPECT_EQ(a.receives(kB, restored).find("write view 2"), 0u) << "it has all that it told";

  Machine again = leading();
  told.votes_before = 7;
  EXPECT_EQ(again.receives(kB, told).find("accept 1a"), 0u);
  EXPECT_EQ(again.receives(kB, accepted(kB, ballot(1, kA))).find("write view 2"), 0u) << "the same process";
}

TEST(ViewChange, AWipedDirectoryIsNoVoter) {
  Machine a = leading();
  Promise wiped = promise(kB, ballot(1, kA));
  wiped.directory = 999;
  EXPECT_EQ(a.receives(kB, wiped), "");
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA))).find("accept 1a"), 0u);
  EXPECT_EQ(a.receives(kB, Accepted{ballot(1, kA), 999}), "");
  EXPECT_EQ(a.receives(kB, accepted(kB, ballot(1, kA))).find("write view 2"), 0u);

  Machine c = Machine(kC, 3, false);
  schema::NextView others = first_view(3);
  others.members[2].directory = 999;
  c.remembers_voter({kKey, others, {}, {}, {}});
  EXPECT_EQ(c.receives(kA, Prepare{ballot(1, kA)}),
            "promise 1a to a b: no state, unfit: its state directory is not the one that it voted with");
}

TEST(ViewChange, OneOfTwoUnlinkedMembersIsEvicted) {
  Machine a = running(kA, 3);
  EXPECT_EQ(a.receives(kB, Suspect{2, "node-b lost the connection to node-c"}).find("write view 1, promised 1a"), 0u);
  Promise b = promise(kB, ballot(1, kA)), c = promise(kC, ballot(1, kA));
  std::erase(b.reachable, "node-c");
  a.receives(kB, b);
  EXPECT_EQ(a.receives(kC, c), "");
  EXPECT_EQ(a.waits(1'000), "prepare 1a to b c\nseal") << "the connection may come back";
  Machine again = a;
  EXPECT_EQ(again.receives(kB, promise(kB, ballot(1, kA))).find("accept 1a to b c: view 2 of a b c from 12"), 0u);
  EXPECT_EQ(a.receives(kB, b), "");
  EXPECT_EQ(a.waits(999), "");
  EXPECT_EQ(a.waits(1), "prepare 1a to b c\nseal");
  EXPECT_EQ(a.receives(kB, b), "");
  EXPECT_EQ(a.waits(499), "");
  EXPECT_EQ(a.waits(1).find("accept 1a to b c: view 2 of a b from 12"), 0u) << "the junior goes";
}

// Node-b sends and does not hear: what it says of itself is all that the others know.
TEST(ViewChange, AOneWayLinkEvictsAMember) {
  Machine a = running(kA, 3);
  a.receives(kB, Suspect{0, "no sign of life from node-a for 10 s"});
  EXPECT_EQ(a.receives(kC, promise(kC, ballot(1, kA))), "") << "it waits for node-b";
  EXPECT_EQ(a.receives(kB, Prepare{ballot(1, kB)}),
            "write view 1, promised 1b\nseal\npromise 1b to b: step 12, reaches b c")
      << "which does not hear that";
  Machine b = running(kB, 3);
  b.does_not_reach(kA).loses(kA, "no sign of life from node-a for 10 s");
  EXPECT_EQ(b.receives(kC, promise(kC, ballot(1, kB))).find("accept 1b to a c: view 2 of b c from 12"), 0u);
}

TEST(ViewChange, AnIneligibleMemberIsEvicted) {
  Machine c = running(kC, 3), a = running(kA, 3);
  EXPECT_EQ(c.fails({ErrorKind::kIo, "node-c", "data", "node-c cannot read /data"}),
            "suspect c to a b: node-c cannot read /data");
  EXPECT_EQ(c.fails({ErrorKind::kIo, "node-c", "data", "again"}), "");
  a.receives(kC, Suspect{2, "node-c cannot read /data"});
  EXPECT_EQ(c.receives(kA, Prepare{ballot(1, kA)}),
            "write view 1, promised 1a\nseal\npromise 1a to a: step 12, reaches a b, unfit: node-c cannot read /data");
  EXPECT_EQ(a.receives(kC, c.sent<Promise>()), "") << "it waits for node-b";
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA))).find("accept 1a to b c: view 2 of a b from 12"), 0u);
  Decide decide{next_view({kA, kB})};
  decide.view.why = "node-c cannot read /data";
  EXPECT_EQ(c.receives(kA, decide),
            "write view 2"
            "\ndecide to a b: view 2 of a b from 12"
            "\nleave for view 2 of a b from 12"
            "\nsave run-1: INTERRUPTED: node-c was evicted: node-c cannot read /data; the run continues without it");
}

TEST(ViewChange, WithoutAnEligibleMemberTheRunFails) {
  Machine a = running(kA, 2);
  a.fails({ErrorKind::kIo, "node-a", "data", "node-a cannot read /data"});
  Promise b = promise(kB, ballot(1, kA));
  b.unfit = "node-b cannot read /data";
  const std::string both = "node-a cannot read /data; node-b cannot read /data";
  EXPECT_EQ(a.receives(kB, b), "fail to b: , run failed: " + both + "\nsave run-1: FAILED: " + both);

  Machine alone = running(kA, 1);
  EXPECT_EQ(alone.fails({ErrorKind::kIo, "node-a", "data", "node-a cannot read /data"}),
            "write view 1, promised 1a\nseal\nsave run-1: FAILED: node-a cannot read /data");
}

TEST(ViewChange, AConnectionThatComesBackEvictsNoMember) {
  Machine a = leading(), c = running(kC, 3);
  EXPECT_EQ(a.connects(kC), "prepare 1a to b c\nseal");
  a.receives(kB, promise(kB, ballot(1, kA)));
  EXPECT_EQ(a.receives(kC, promise(kC, ballot(1, kA))).find("accept 1a to b c: view 2 of a b c from 12"), 0u)
      << "the same members: what was in flight may be lost";
}

// When it is noticed all others have promised already: it is waited for all the same.
TEST(ViewChange, AReconnectBeforeTheGraceEndsEvictsNoMember) {
  Machine a = running(kA, 4);
  a.disconnects(kD);
  a.receives(kB, promise(kB, ballot(1, kA)));
  EXPECT_EQ(a.is_back(kC), "suspect c to b c d: " + kNoC + "\nprepare 1a to b c d\nseal");
  EXPECT_EQ(a.receives(kC, promise(kC, ballot(1, kA))).find("accept 1a to b c d: view 2 of a b c from 12"), 0u);
}

TEST(ViewChange, AVoteThatIsNotWrittenIsNotSent) {
  const std::string full = "node-b cannot write its vote: its disk is full";
  Machine b = running(kB, 3);
  EXPECT_EQ(b.disk_is_full().receives(kA, Prepare{ballot(1, kA)}),
            "write view 1, promised 1a\nsuspect b to a c: " + full);
  EXPECT_EQ(b.vote().promised.count, 0u);
  EXPECT_EQ(b->pause_reason(), full);
  EXPECT_EQ(b.receives(kA, Prepare{ballot(1, kA)}), "write view 1, promised 1a");
  EXPECT_EQ(b.waits(1'000), "write view 1, promised 1a") << "room was made?";
  Machine left_out = b;
  b.disk_is_full(false);
  EXPECT_EQ(b.waits(1'000), "write view 1, promised 1a");
  EXPECT_EQ(b->pause_reason(), "");
  EXPECT_EQ(b.receives(kA, Prepare{ballot(1, kA)}),
            "write view 1, promised 1a\nseal\npromise 1a to a: step 12, reaches a c");

  // A decision cannot be written to a full disk, either.
  Machine behind = left_out;
  EXPECT_EQ(behind.receives(kA, Decide{next_view({kA, kB, kC})}), "write view 2\nsuspect b to a c (view 2): " + full);
  EXPECT_EQ(behind->pause_reason(), full);

  // What was decided is not done before it is written.
  EXPECT_EQ(left_out.receives(kA, Decide{next_view({kA, kC})}), "write view 2");
  EXPECT_EQ(left_out.receives(kC, Prepare{ballot(1, kC)}), "") << "nor sent";
  EXPECT_EQ(left_out.waits(999), "");
  left_out.disk_is_full(false);
  EXPECT_EQ(left_out.waits(1).find("write view 2\ndecide to a c: view 2 of a c from 12\nleave for view 2 of a c"), 0u);
}

TEST(ViewChange, OneVoteIsWrittenAtATime) {
  Machine b = running(kB, 3);
  EXPECT_EQ(b.disk_stands_still().receives(kA, Prepare{ballot(1, kA)}), "write view 1, promised 1a");
  EXPECT_EQ(b.receives(kA, Prepare{ballot(1, kA)}), "") << "it is being written";
  EXPECT_EQ(b.receives(kC, Prepare{ballot(2, kC)}), "");
  EXPECT_EQ(b.receives(kC, Accept{ballot(2, kC), next_view({kB, kC})}), "");
  EXPECT_EQ(b.disk_goes_on(), "write view 1, promised 2c, accepted 2c\nseal\naccepted 2c to c")
      << "all at once, and the promise that was exceeded is not told";
}

TEST(ViewChange, ADiskThatStandsStillIsNamed) {
  const std::string stands = "the disk of node-b stands still";
  Machine b = running(kB, 3);
  b.disk_stands_still().receives(kA, Prepare{ballot(1, kA)});
  EXPECT_EQ(b->pause_reason(), "");
  EXPECT_EQ(b.disk_is_late(stands), "suspect b to a c: " + stands);
  EXPECT_EQ(b->pause_reason(), stands);
  EXPECT_EQ(b.disk_is_late(stands), "") << "said once";

  // The others go on without it; it learns that, and does it once it is written.
  EXPECT_EQ(b.receives(kA, Decide{next_view({kA, kC})}), "");
  EXPECT_EQ(b.disk_is_late(stands), "");
  EXPECT_EQ(b->pause_reason(), stands);
  EXPECT_EQ(b.disk_goes_on().find("write view 2\ndecide to a c: view 2 of a c from 12\nleave for view 2 of a c"), 0u);

  // In a view that has it, too.
  Machine c = running(kC, 3);
  c.disk_stands_still().receives(kA, Decide{next_view({kA, kC})});
  EXPECT_EQ(c.disk_is_late(stands), "suspect c to a (view 2): " + stands);
  EXPECT_EQ(c->pause_reason(), stands);
}

TEST(ViewChange, ACoordinatorWithAFullDiskStepsAside) {
  Machine a = running(kA, 3);
  EXPECT_EQ(a.disk_is_full().disconnects(kC), "suspect c to b c: " + kNoC +
                                                  "\nwrite view 1, promised 1a"
                                                  "\nsuspect a to b c: node-a cannot write its vote: its disk is full");
  // Node-b does not wait for it.
  Machine b = running(kB, 3);
  b.receives(kA, Suspect{2, kNoC});
  EXPECT_EQ(b.receives(kA, Suspect{0, "node-a cannot write its vote: its disk is full"}),
            "write view 1, promised 1b\nseal\nprepare 1b to a c");
}

// --- nodes that are shut down ---

TEST(ViewChange, AGoodbye) {
  Machine c = running(kC, 3), a = running(kA, 3);
  EXPECT_EQ(c.shuts_down(), "goodbye to a b: node-c was shut down");
  EXPECT_EQ(a.receives(kC, c.sent<Goodbye>()),
            "suspect c to b c: node-c was shut down"
            "\nwrite view 1, promised 1a"
            "\nseal"
            "\nprepare 1a to b c");
  EXPECT_EQ(c.receives(kA, a.sent<Prepare>()),
            "write view 1, promised 1a\nseal\npromise 1a to a: step 12, reaches a b, leaving");
  a.receives(kC, c.sent<Promise>());
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA))).find("accept 1a to b c: view 2 of a b from 12, waiting"), 0u)
      << "more may leave";
  EXPECT_EQ(c.receives(kA, Decide{next_view({kA, kB})}),
            "write view 2"
            "\ndecide to a b: view 2 of a b from 12"
            "\nleave for view 2 of a b from 12"
            "\nsave run-1: INTERRUPTED: node-c was shut down");
  EXPECT_EQ(c.saves(an_end(schema::RunState::kInterrupted, 60, "node-c was shut down")),
            "ended? to a b: INTERRUPTED, node-c was shut down, saved"
            "\nend run-1: INTERRUPTED: node-c was shut down (a ?, b ?, c saved)"
            "\ngoodbye to a b: node-c was shut down")
      << "no other outcome is known";
}

TEST(ViewChange, AShutdownOfTheSeniorOfTwo) {
  Machine a = running(kA, 2), b = running(kB, 2);
  a.shuts_down();
  EXPECT_EQ(b.receives(kA, a.sent<Goodbye>()).find("suspect a to a: node-a was shut down\nwrite view 1, promised 1b"),
            0u);
  EXPECT_EQ(a.receives(kB, Prepare{ballot(1, kB)}),
            "write view 1, promised 1b\nseal\npromise 1b to b: step 12, reaches b, leaving");
  EXPECT_EQ(b.receives(kA, a.sent<Promise>()).find("accept 1b to a: view 2 of b from 12, waiting"), 0u);
  EXPECT_EQ(a.receives(kB, b.sent<Accept>()), "write view 1, promised 1b, accepted 1b\nseal\naccepted 1b to b");
}

TEST(ViewChange, AShutdownDoesNotWaitForEver) {
  Machine c = running(kC, 3);
  c.shuts_down();
  EXPECT_EQ(c.waits(1'999), "");
  EXPECT_EQ(c.waits(1), "save run-1: INTERRUPTED: node-c was shut down");
  EXPECT_EQ(c.receives(kA, Prepare{ballot(1, kA)}), "write view 1, promised 1a\npromise 1a to a: no state, leaving")
      << "its vote counts";
}

TEST(ViewChange, AShutdownOfAllInterruptsTheRun) {
  Machine b = running(kB, 3);
  b.receives(kA, Goodbye{"node-a was shut down"});
  EXPECT_EQ(b.shuts_down(), "goodbye to a c: node-b was shut down") << "node-c may go on";
  EXPECT_EQ(b.receives(kC, Goodbye{"node-c was shut down"}),
            "suspect c to a c: node-c was shut down\nsave run-1: INTERRUPTED: node-b was shut down");
  b.saves(an_end(schema::RunState::kInterrupted, 60, "node-b was shut down"));
  b.receives(kA, an_end(schema::RunState::kInterrupted, 50, "node-a was shut down"));
  EXPECT_EQ(b.receives(kC, an_end(schema::RunState::kInterrupted, 61, "node-c was shut down")),
            "end run-1: INTERRUPTED: node-c was shut down (a saved, b saved, c saved)"
            "\ngoodbye to a c: node-b was shut down");
}

// --- with the end of the run ---

TEST(ViewChange, ANodeThatKnowsTheOutcomeReportsIt) {
  Machine a = running(kA, 3);
  a.finishes(schema::RunState::kCompleted, "");
  EXPECT_EQ(a.receives(kB, Prepare{ballot(1, kB)}), "") << "it has not saved yet";
  a.saves(an_end(schema::RunState::kCompleted, 50));
  EXPECT_EQ(a.receives(kB, Prepare{ballot(1, kB)}), "ended to b: COMPLETED, saved");
  EXPECT_EQ(promised().receives(kA, an_end(schema::RunState::kCompleted, 50)), "save run-1: COMPLETED");
}

TEST(ViewChange, AStopIsAskedForAgain) {
  Machine b = promised();
  EXPECT_EQ(b.stops(), "ask to stop");
  EXPECT_EQ(b.receives(kA, Decide{next_view({kA, kB})}),
            "write view 2"
            "\ndecide to a c: view 2 of a b from 12"
            "\ninstall view 2 of a b from 12"
            "\nask to stop");
}

TEST(ViewChange, OnlyMembersAreWaitedForAtTheEnd) {
  Machine b = promised();
  b.receives(kA, Decide{next_view({kA, kB})});
  b.finishes(schema::RunState::kCompleted, "");
  b.saves(an_end(schema::RunState::kCompleted, 50));
  EXPECT_EQ(b.receives(kA, an_end(schema::RunState::kCompleted, 40)),
            "end run-1: COMPLETED (a saved, b saved, c ?)\nended? to c: COMPLETED, saved");
}

// A node that was evicted hears of it as soon as it is reachable again, and of the end as well.
TEST(ViewChange, AnEvictedNodeLearnsTheOutcome) {
  Machine c = running(kC, 3);
  c.receives(kA, Decide{next_view({kA, kB})});
  c.saves(an_end(schema::RunState::kInterrupted, 60, "left", schema::SaveState::kSaved, 8));
  EXPECT_TRUE(c->idle());
  EXPECT_EQ(c.start("run-2", 78), "claim run-2 to a (key 78)") << "it is free";
  EXPECT_EQ(c.receives(kB, Prepare{ballot(2, kB)}), "decide to b: view 2 of a b from 12") << "node-b does not know it";
  EXPECT_EQ(c.receives(kA, an_end(schema::RunState::kCompleted, 90))
                .find("record: COMPLETED (a saved, b ?, c nothing saved)"),
            0u);
  EXPECT_EQ(c.receives(kB, Prepare{ballot(3, kB)}), "ended to b: COMPLETED, nothing saved");
}

}  // namespace
}  // namespace tg::daemon

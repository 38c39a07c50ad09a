// A node joins an active run: the senior admits it (admission.h), the node asks and installs (joiner.h), and a view
// change makes it a member. Whole runs with joins: training/schedules_test.cpp.
#include <gtest/gtest.h>

#include <string>

#include "daemon/membership/admission.h"
#include "daemon/membership/choose_view.h"
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Decide;
using schema::Invite;
using schema::Join;
using schema::Quiesce;
using schema::SnapshotDone;
using schema::SnapshotOffer;
using schema::SnapshotRequest;

const schema::StateId kState{1, 2, 12, 0xd12};
const SnapshotOffer kOffer{kState, {10, 0, 20, 1'000'000}};

// node-a and node-b have gone on without node-c, which is back.
Machine two_of_three(Seat self, const schema::Vote& own = yes()) {
  Machine one = running(self, 3, own);
  one.disconnects(kC);
  if (self == kA) {
    one.receives(kB, promise(kB, ballot(1, kA)));
    one.receives(kB, accepted(kB, ballot(1, kA)));
  } else {
    one.receives(kA, schema::Prepare{ballot(1, kA)});
    one.receives(kA, Decide{next_view({kA, kB})});
  }
  one.connects(kC);
  return one;
}
Join join(bool prepared, const schema::Vote& vote = yes()) {
  Join join{"run-1", prepared, vote, {"node-a", "node-b"}};
  join.vote.directory = directory_of(kC);
  join.vote.incarnation = incarnation_of(kC);
  return join;
}
std::string asks(Machine& one, const Join& join) { return one.receives(kC, join, 0, 0); }

Machine sending() {
  Machine a = two_of_three(kA);
  asks(a, join(true));
  a.is_quiesced();
  a.offers_snapshot(kOffer);
  return a;
}

TEST(Admission, AJoinGoesFromTheRequestToTheView) {
  Machine a = two_of_three(kA);
  EXPECT_EQ(asks(a, join(false)), "invite to c (view 2): run-1, view 2 of a b from 12");
  EXPECT_EQ(asks(a, join(true)), "invite to c (view 2): run-1, view 2 of a b from 12\nquiesce");
  EXPECT_EQ(asks(a, join(true)), "") << "it is its turn already";
  EXPECT_EQ(a.is_quiesced(), "read the history");
  EXPECT_EQ(a.is_quiesced(), "");
  EXPECT_EQ(a.offers_snapshot(kOffer),
            "snapshot offer to c (view 2): step 12"
            "\nquiesced for c to b c (view 2): node-c joins: 0 % of 1 MB, the others wait 0 s"
            "\nnote: node-c joins: 0 % of 1 MB, the others wait 0 s");
  EXPECT_EQ(a.receives(kC, SnapshotRequest{500'000}, kKey, 2), "send chunks to c from 500000");
  EXPECT_EQ(a.receives(kC, SnapshotDone{kState, {"node-a", "node-b"}}, kKey, 2),
            "quiesced for c to b c (view 2): node-c joins: 100 % of 1 MB, the others wait 0 s"
            "\nnote: node-c joins: 100 % of 1 MB, the others wait 0 s"
            "\nwrite view 2, promised 1a"
            "\nseal"
            "\nprepare 1a to b (view 2)");
  EXPECT_EQ(a.receives(kB, promise(kB, ballot(1, kA)), kKey, 2),
            "accept 1a to b (view 2): view 3 of a b c from 12"
            "\nwrite view 2, promised 1a, accepted 1a"
            "\nseal"
            "\nwrite view 3"
            "\ndecide to b c (view 2): view 3 of a b c from 12"
            "\ninstall view 3 of a b c from 12")
      << "half with the most senior one are a quorum";
  EXPECT_EQ(a.vote().view.why, "node-c joins");
  const schema::ViewMember& member = a.vote().view.members.back();
  EXPECT_EQ(member.seat, 2u);
  EXPECT_EQ(member.since, 3u) << "last in seniority";
  EXPECT_EQ(a->view().size(), 3u);
}

TEST(Admission, OnlyTheSeniorAnswersAJoin) {
  Machine b = two_of_three(kB);
  EXPECT_EQ(asks(b, join(false)), "");
  Machine in_its_first_view = running(kA, 3);
  EXPECT_EQ(asks(in_its_first_view, join(true)), "") << "node-c is a member: its old process is left out first";
}

TEST(Admission, ARefusalSaysWhy) {
  Machine a = two_of_three(kA);
  Join half = join(true);
  half.reachable = {"node-a"};
  EXPECT_EQ(asks(a, half), "released for c to c (view 2): node-c and node-b do not reach each other");
  schema::Vote other = yes();
  other.data_hash = 9;
  const std::string data = asks(a, join(true, other));
  EXPECT_NE(data.find("released for c to c (view 2): data differ: node-a has 0000000000000003, node-c has "),
            std::string::npos)
      << data;
  EXPECT_EQ(data.find("quiesce"), std::string::npos) << data;
  schema::Vote no = yes();
  no.accepted = false;
  no.message = "node-c has no room";
  EXPECT_EQ(asks(a, join(true, no)), "released for c to c (view 2): node-c has no room");
}

TEST(Admission, ALostJoinerCostsOnlyTime) {
  Machine asked = two_of_three(kA);
  asks(asked, join(true));
  EXPECT_NE(asked.disconnects(kC).find("released for c to b c (view 2)"), std::string::npos);
  EXPECT_NE(asked.is_quiesced().find("release"), std::string::npos)
      << "the hold that was asked for comes, and is over at once";
  Machine a = sending();
  const std::string lost = "node-a lost node-c, which was about to join";
  EXPECT_EQ(a.disconnects(kC), "released for c to b c (view 2): " + lost + "\nrelease: " + lost);
  Machine silent = sending();
  const std::string words = silent.waits(10'000);
  EXPECT_NE(words.find("release: node-c was about to join and was silent for 10 s"), std::string::npos) << words;
  Machine again = sending();
  Join restarted = join(true);
  restarted.vote.incarnation = 902;
  EXPECT_NE(asks(again, restarted).find("release: node-c was restarted"), std::string::npos);
}

TEST(Admission, ThePauseBetweenJoinsDoubles) {
  Machine a = sending();
  a.disconnects(kC);
  a.connects(kC);
  EXPECT_EQ(asks(a, join(true)),
            "released for c to c (view 2): node-c joined not long ago; it is admitted again in 10 s");
  a.waits(10'000);
  EXPECT_NE(asks(a, join(true)).find("quiesce"), std::string::npos);
  a.is_quiesced();
  a.disconnects(kC);
  a.connects(kC);
  a.waits(10'000);
  EXPECT_NE(asks(a, join(true)).find("it is admitted again in 10 s"), std::string::npos) << "20 s this time";
  a.waits(100'000);
  EXPECT_NE(asks(a, join(true)).find("quiesce"), std::string::npos);
  a.is_quiesced();
  a.disconnects(kC);
  a.connects(kC);
  a.waits(10'000);
  EXPECT_NE(asks(a, join(true)).find("quiesce"), std::string::npos) << "it was quiet for long";
}

TEST(Admission, ASlowSnapshotIsAbandonedEarly) {
  Machine a = sending();
  a.receives(kC, SnapshotRequest{20'000}, kKey, 2);
  EXPECT_EQ(a.waits(1'000).find("release"), std::string::npos);
  a.receives(kC, SnapshotRequest{30'000}, kKey, 2);
  const std::string words = a.waits(1'000);  // 3 % in 2 s
  EXPECT_NE(words.find("release: sending node-c the state would take 67 s, and join-limit is 60 s"), std::string::npos)
      << words;
}

TEST(Admission, AnotherViewChangeReplacesAJoin) {
  Machine a = sending();
  EXPECT_NE(a.loses(kB, "no sign of life from node-b").find("prepare 1a"), std::string::npos);
  EXPECT_EQ(a.receives(kC, SnapshotDone{kState, {"node-a", "node-b"}}, kKey, 2).find("prepare"), std::string::npos);
}

TEST(Admission, AStopReleasesTheMembers) {
  Machine a = sending();
  EXPECT_EQ(a.stops(),
            "ask to stop\nreleased for c to b c (view 2): node-a was asked to stop the run"
            "\nrelease: node-a was asked to stop the run");
  Machine told = sending();
  Machine b = two_of_three(kB);
  b.receives(kA, Quiesce{"node-c", 1, 2, false, "node-c joins"}, kKey, 2);
  EXPECT_EQ(b.stops(), "ask to stop\nreleased for b to a (view 2): node-b was asked to stop the run");
  EXPECT_EQ(
      told.receives(kB, b.sent<Quiesce>(), kKey, 2),
      "released for c to b c (view 2): node-b was asked to stop the run\nrelease: node-b was asked to stop the run");
}

TEST(Admission, OnlyTheSeniorReleasesAMember) {
  Machine b = two_of_three(kB);
  EXPECT_EQ(b.receives(kA, Quiesce{"node-c", 1, 2, false, "node-c joins"}, kKey, 2), "note: node-c joins");
  EXPECT_EQ(b.receives(kC, Quiesce{"node-c", 1, 2, true, "no"}, kKey, 2), "");
  EXPECT_EQ(b.receives(kA, Quiesce{"node-c", 1, 2, true, "no"}, kKey, 1), "decide to a: view 2 of a b from 12")
      << "of another view";
  EXPECT_EQ(b.receives(kA, Quiesce{"node-c", 1, 2, true, "node-c was lost"}, kKey, 2), "release: node-c was lost");
}

// --- a member leaves ---

TEST(Admission, AMemberLeavesWhileAllAreQuiesced) {
  Machine a = running(kA, 3);
  EXPECT_EQ(a.receives(kC, schema::Leave{}), "quiesce");
  EXPECT_EQ(a.receives(kC, schema::Leave{}), "") << "it is asked for";
  EXPECT_EQ(a.receives(kB, schema::Leave{}), "") << "one at a time";
  EXPECT_EQ(a.is_quiesced(), "quiesced for c to c: node-c leaves");
  EXPECT_NE(a.receives(kC, schema::Suspect{2, "node-c left on request"}).find("write view 1, promised 1a"),
            std::string::npos);
}

TEST(Admission, AMemberThatDoesNotLeaveStaysAMember) {
  Machine lost = running(kA, 3);
  lost.receives(kC, schema::Leave{});
  lost.is_quiesced();
  EXPECT_NE(lost.disconnects(kC).find("release: node-a lost node-c, which was about to leave"), std::string::npos);
  Machine silent = running(kA, 3);
  silent.receives(kC, schema::Leave{});
  silent.is_quiesced();
  EXPECT_EQ(silent.waits(10'000).find("released for c to b c: node-c was about to leave and was silent for 10 s"), 0u);
}

TEST(Leaving, AsksUntilItIsQuiesced) {
  Machine c = running(kC, 3);
  EXPECT_EQ(c.leaves(), "leave to a");
  EXPECT_EQ(c.waits(500), "");
  EXPECT_EQ(c.waits(500), "leave to a");
  EXPECT_EQ(c.is_quiesced(), "") << "it may be for another one";
  EXPECT_EQ(c.receives(kA, Quiesce{.node = "node-b", .why = "node-b leaves"}), "note: node-b leaves");
  EXPECT_EQ(c.receives(kA, Quiesce{.node = "node-c", .why = "node-c leaves"}),
            "suspect c to a b: node-c left on request\nnote: node-c leaves");
  EXPECT_EQ(c.waits(1'000), "") << "the change is on";
  c.receives(kA, schema::Prepare{ballot(1, kA)});
  EXPECT_NE(c.receives(kA, Decide{next_view({kA, kB})})
                .find("save run-1: INTERRUPTED: node-c left on request; the run continues without it"),
            std::string::npos);
}

TEST(Leaving, TheSeniorQuiescesTheRunForItself) {
  Machine a = running(kA, 2);
  EXPECT_EQ(a.leaves(), "quiesce");
  EXPECT_EQ(a.is_quiesced().find("suspect a to b: node-a left on request"), 0u);
}

// Its node asks again and again: an answer each time would keep it from ever hearing that the decision is written.
TEST(Leaving, ADecisionThatIsNotWrittenYetEndsTheQuiesceOnlyOnce) {
  Machine b = running(kB, 3);
  b.receives(kA, schema::Prepare{ballot(1, kA)});
  b.disk_stands_still();
  EXPECT_EQ(b.receives(kA, Decide{next_view({kB, kC})}).find("write view 2"), 0u);
  EXPECT_EQ(b.is_quiesced(), "");
  EXPECT_NE(b.disk_goes_on().find("install view 2"), std::string::npos);
}

// A member leaves on request, and rejoins without being restarted: from then on it is as good as any other.
TEST(Leaving, AMemberThatLeftMayRejoin) {
  Machine c = running(kC, 3);
  c.leaves();
  c.receives(kA, Quiesce{.node = "node-c", .why = "node-c leaves"});
  c.receives(kA, schema::Prepare{ballot(1, kA)});
  c.receives(kA, Decide{next_view({kA, kB})});
  c.saves(an_end(schema::RunState::kInterrupted, 1));
  c.discovers_run();
  c.waits(3'000);
  c.receives(kA, Invite{"run-1", schema::canonical_job({}), {1, 1, 1}, 64, 1, next_view({kA, kB}), {}}, kKey, 2);
  c.prepares(yes());
  c.receives(kA, kOffer, kKey, 2);
  c.has_snapshot();
  schema::NextView back = next_view({kA, kB, kC}, 12, 3);
  back.members.back().since = 3;
  c.receives(kA, Decide{back}, kKey, 2);
  ASSERT_EQ(c->view().size(), 3u);
  const std::string promise = c.receives(kA, schema::Prepare{ballot(1, kA)}, kKey, 3);
  EXPECT_NE(promise.find("promise 1a"), std::string::npos) << promise;
  EXPECT_EQ(promise.find("leaving"), std::string::npos) << promise;
}

TEST(Leaving, TheLastMemberDoesNotLeave) {
  Machine a = running(kA, 2);
  a.leaves();
  a.disconnects(kB);
  a.waits(20'000);
  EXPECT_EQ(a.waits(2'000).find("leave"), std::string::npos);
  EXPECT_EQ(a->state(), schema::RunState::kRunning);
  EXPECT_EQ(a->view().size(), 1u) << "it went on";
}

// The others do not hear what this node does any more.
TEST(Leaving, AStopWhileTheRunIsSavedDoesNoHarm) {
  Machine a = running(kA, 3);
  a.finishes(schema::RunState::kCompleted, "");
  EXPECT_EQ(a.stops(), "");
}

// The others lost power, and resumed from a checkpoint with another key.
TEST(Paused, ARunResumedElsewhereIsLeft) {
  Machine c = running(kC, 3);
  c.disconnects(kA);
  c.disconnects(kB);
  c.waits(20'000);
  EXPECT_EQ(c->state(), schema::RunState::kPaused);
  c.connects(kA);
  EXPECT_EQ(c.receives_heartbeat(kA, 1), "");
  const daemon::Lineage second{2, 99, {{1, kKey, 5}}};
  const std::string evicted = "save run-1: INTERRUPTED: node-c was evicted: the run was resumed without it";
  EXPECT_NE(c.receives_heartbeat(kA, 1, second).find(evicted), std::string::npos);
  EXPECT_NE(running(kC, 3).receives_heartbeat(kA, 1, second).find(evicted), std::string::npos) << "RUNNING, too";
}

// The others stopped it and resumed it while this node was cut off; one of them reports the stop after that.
TEST(Paused, OneThatWasResumedElsewhereReportsNoEnd) {
  Machine c = running(kC, 3);
  c.receives(kA, an_end(schema::RunState::kStopped, 60));
  c.saves(an_end(schema::RunState::kStopped, 61));
  const daemon::Lineage second{2, 99, {{1, kKey, 5}}};
  EXPECT_NE(c.receives_heartbeat(kB, 1, second).find("end run-1: STOPPED"), std::string::npos);
}

// A person ordered it while this part of the mesh was cut off and continued.
TEST(Lineages, TheLowerOneEndsWhereItIsContradicted) {
  const daemon::Lineage second{2, 99, {{1, kKey, 4}}};
  EXPECT_NE(
      running(kC, 3)
          .receives_heartbeat(kA, 1, second)
          .find(
              "save run-1: INTERRUPTED: node-a continues it as lineage 2, from step 4; node-c has lineage 1 at step 5"),
      std::string::npos);
  EXPECT_EQ(running(kC, 3).receives_heartbeat(kA, 1, {1, kKey - 1, {}}), "") << "the lower one ends";
}

TEST(Leaving, ARefusalSaysWhy) {
  EXPECT_EQ(running(kA, 1).leaves(), "no: node-a is the only member of run run-1; tgctl stop run-1 ends it");
  EXPECT_EQ(Machine(kA, 2).leaves(), "no: node-a is in no run");
  Machine alone = running(kB, 2);
  alone.disconnects(kA);
  alone.waits(20'000);
  EXPECT_EQ(alone.leaves().find("no: run run-1 is PAUSED"), 0u);
}

// --- the joiner ---

schema::NextView members() { return next_view({kA, kB}); }
Invite invite() { return {"run-1", schema::canonical_job({}), {1, 1, 1}, 64, 1, members(), {}}; }

Machine ready() {
  Machine c(kC, 3);
  c.discovers_run();
  c.waits(0);
  c.receives(kA, invite(), kKey, 2);
  c.prepares(yes());
  return c;
}
Machine has_the_state() {
  Machine c = ready();
  c.receives(kA, kOffer, kKey, 2);
  c.has_snapshot();
  return c;
}
schema::NextView with_c() {
  schema::NextView next = next_view({kA, kB, kC}, 12, 3);
  next.names = {"node-a", "node-b", "node-c"};
  next.members.back().since = 3;
  return next;
}

TEST(Joiner, TheDonorMayDie) {
  Machine c = ready();
  c.receives(kA, kOffer, kKey, 2);
  for (int second = 0; second < 20; ++second) {
    c.receives(kA, Quiesce{"node-c", 1, 2, false, "node-c joins"}, kKey, 2);
    c.discovers_run();
    EXPECT_EQ(c.waits(1'000), "") << "it receives the snapshot";
  }
  c.disconnects(kA);
  c.discovers_run();
  EXPECT_EQ(c.waits(4'000), "join run-1 to b (key 0) (view 0): prepared, reaches b");
  schema::NextView later = next_view({kB}, 14, 3);
  c.receives(kB, Invite{"run-1", schema::canonical_job({}), {1, 1, 1}, 64, 1, later, {}}, kKey, 3);
  EXPECT_EQ(c.receives(kB, SnapshotOffer{{1, 3, 14, 0xd14}, {10}}, kKey, 3), "receive the snapshot of step 14 from b");
}

TEST(Joiner, AJoinGoesFromTheFirstHeartbeatToTheView) {
  Machine c(kC, 3);
  EXPECT_EQ(c.discovers_run(), "");
  EXPECT_EQ(c.waits(0), "join run-1 to a b (key 0) (view 0): not prepared, reaches a b");
  EXPECT_EQ(c->state(), std::nullopt) << "asking binds no node";
  EXPECT_EQ(c.receives(kA, invite(), kKey, 2), "prepare run-1 with a b c");
  EXPECT_EQ(c->state(), schema::RunState::kStarting);
  EXPECT_EQ(c.prepares(yes()), "join run-1 to a b (key 0) (view 0): prepared, reaches a b");
  EXPECT_EQ(c.receives(kA, invite(), kKey, 2), "");
  EXPECT_EQ(c.receives(kA, kOffer, kKey, 2), "receive the snapshot of step 12 from a");
  EXPECT_EQ(c.has_snapshot(), "snapshot done to a b (view 2): step 12");
  EXPECT_EQ(c.receives(kA, Decide{with_c()}, kKey, 2),
            "write view 3"
            "\ndecide to a b (view 2): view 3 of a b c from 12"
            "\ninstall view 3 of a b c from 12"
            "\njoin run-1 in view 3 of a b c from 12");
  EXPECT_EQ(c->state(), schema::RunState::kRunning);
  EXPECT_EQ(c.vote().view, with_c());
}

// What nobody says that runs this tgd.
TEST(Joiner, OnlyTheSeniorOfAViewWithoutItInvitesItAndSendsTheState) {
  Machine c(kC, 3);
  c.discovers_run();
  c.waits(0);
  EXPECT_EQ(c.receives(kB, invite(), kKey, 2), "");
  Invite itself = invite();
  itself.view = with_c();
  EXPECT_EQ(c.receives(kA, itself, kKey, 3), "");
  EXPECT_EQ(ready().receives(kB, kOffer, kKey, 2), "") << "node-a has invited it";
  Machine told = ready();
  EXPECT_EQ(told.receives(kB, an_end(schema::RunState::kCompleted, 1), kKey, 2), "");
}

// Node-b slept through several views, and was started again. Node-d, which came in meanwhile, is the only one there.
TEST(Joiner, AVoterAsksThoseThatItKnows) {
  Machine b(kB, 4, false);
  b.remembers_voter({kKey, first_view(3), {}, {}, {}});
  b.connects(kD);
  b.discovers_run();
  EXPECT_EQ(b.waits(0), "join run-1 to d (key 0) (view 0): not prepared, reaches d");
  const Invite now{"run-1", schema::canonical_job({}), {1, 1, 1, 1}, 64, 1, next_view({kD}, 20, 5), {}};
  EXPECT_EQ(b.receives(kD, now, kKey, 5),
            "hint: node-d invites it, but is in no view that node-b knows; asking node-a, node-c"
            "\ndecide to a c (view 0): view 1 of a b c from 0");
  EXPECT_EQ(b.receives(kD, Decide{next_view({kD}, 20, 5)}, kKey, 4), "") << "asked not long ago";
  EXPECT_NE(b.connects(kC).find("suspect b to c"), std::string::npos) << "so it hears of what node-c knows";
  EXPECT_EQ(b.receives(kC, Decide{next_view({kC, kD}, 14, 3)}, kKey, 2),
            "write view 3\ndecide to a c d (view 2): view 3 of c d from 14");
  EXPECT_EQ(b.receives(kD, now, kKey, 5),
            "prepare run-1 with b d\nwrite view 5\ndecide to c d (view 4): view 5 of d from 20");
}

// The run was resumed without node-b, and node-d invites.
TEST(Joiner, AVoterBelievesALaterLineageOfThoseThatItKnows) {
  Machine b(kB, 4, false);
  b.remembers_voter({kKey, first_view(3), {}, {}, {}});
  b.connects(kC);
  b.connects(kD);
  b.discovers_run();
  b.waits(0);
  const Invite now{"run-1", schema::canonical_job({}), {1, 1, 1, 1}, 64, 2, next_view({kD}, 20, 5), {}};
  EXPECT_EQ(b.receives(kD, now, 78, 5).find("hint: node-d invites it"), 0u);
  b.receives_heartbeat(kD, 5, {2, 78, {}});
  EXPECT_EQ(b.receives(kD, now, 78, 5), "") << "its own word";
  b.receives_heartbeat(kC, 5, {2, 78, {}});
  EXPECT_EQ(b.receives(kD, now, 78, 5).find("prepare run-1 with b d"), 0u);
}

TEST(Joiner, HasNoVoteBeforeItIsAMember) {
  Machine c = has_the_state();
  EXPECT_EQ(c.receives(kA, schema::Prepare{ballot(1, kA)}, kKey, 2), "");
  EXPECT_EQ(c.receives(kA, schema::Accept{ballot(1, kA), with_c()}, kKey, 2), "");
}

TEST(Joiner, ADecisionWithoutTheJoinerOrOfAnotherStateIsNotInstalled) {
  Machine c = has_the_state();
  EXPECT_EQ(c.receives(kA, Decide{next_view({kA, kB}, 13, 3)}, kKey, 2).find("join run-1 in"), std::string::npos);
  EXPECT_EQ(c->state(), schema::RunState::kStarting) << "what it has prepared stays";
  EXPECT_NE(c.waits(0).find("join run-1 to a b"), std::string::npos) << "it asks again";
  Machine ahead = has_the_state();
  schema::NextView next = with_c();
  next.start = 13;
  EXPECT_EQ(ahead.receives(kA, Decide{next}, kKey, 2).find("join run-1 in"), std::string::npos)
      << "P6: of another state";
}

TEST(Joiner, AJoinerThatStaysOutDropsItsState) {
  Machine c = has_the_state();
  EXPECT_EQ(c.stays_out(), "drop");
  c.waits(0);
  const std::string said = c.receives(kA, Decide{with_c()}, kKey, 2);
  EXPECT_EQ(said.find("install"), std::string::npos) << said;
  EXPECT_NE(said.find("suspect c to a b (view 3): node-c has no state of the run"), std::string::npos) << said;
}

TEST(Joiner, AsksAgainAfterARefusal) {
  Machine c = ready();
  EXPECT_EQ(c.receives(kA, Quiesce{"node-c", 0, 0, true, "node-b joins first"}, kKey, 2), "note: node-b joins first");
  EXPECT_EQ(c.waits(2'999), "");
  c.discovers_run();
  EXPECT_NE(c.waits(1).find("join run-1 to a b"), std::string::npos);
  Machine prepared = has_the_state();
  prepared.receives(kA, Quiesce{"node-c", 0, 0, true, "it takes too long"}, kKey, 2);
  prepared.discovers_run();
  EXPECT_NE(prepared.waits(3'000).find("prepared"), std::string::npos);
}

TEST(Joiner, ARunThatIsOverIsDropped) {
  Machine c = ready();
  EXPECT_EQ(c.waits(5'000), "drop");
  EXPECT_EQ(c->state(), std::nullopt);
  Machine told = ready();
  EXPECT_NE(told.receives(kA, an_end(schema::RunState::kCompleted, 1), kKey, 2).find("drop"), std::string::npos);
  Machine unable = ready();
  unable.receives(kA, kOffer, kKey, 2);
  EXPECT_EQ(unable.has_snapshot("the state came damaged"), "note: the state came damaged\ndrop");
}

TEST(Joiner, AJoiningNodeStartsNoOtherRun) {
  Machine c = ready();
  EXPECT_NE(c.start("run-2", 78).find("run run-1 is active, and node-c is about to join it"), std::string::npos);
  EXPECT_NE(c.stops().find("ask one of its members"), std::string::npos);
  Machine busy = running(kC, 3);
  EXPECT_EQ(busy.discovers_run(), "");
  EXPECT_EQ(busy.waits(0), "");
}

// --- the choice ---

// The run began with node-c and node-b; node-d has left it.
TEST(ChooseView, ANewcomerGetsTheNextSeatAndAFormerMemberItsOwn) {
  const View view({.number = 3, .members = {{.seat = 0}, {.seat = 1}}, .names = {"node-c", "node-b", "node-d"}},
                  {"node-a", "node-b", "node-c", "node-d"});
  schema::Promise of_b = promise(kB, ballot(1, kC)), of_c = promise(kC, ballot(1, kC));
  const auto with = [&](const std::string& name) {
    return *choose_view(view, {{kC, of_c}, {kB, of_b}}, "", ReadyJoiner{{.since = 4}, 12, name});
  };
  const schema::NextView with_a = with("node-a"), with_d = with("node-d");
  EXPECT_EQ(with_a.members.back().seat, 3u);
  EXPECT_EQ(with_a.names, (std::vector<std::string>{"node-c", "node-b", "node-d", "node-a"}));
  EXPECT_EQ(with_d.members.back().seat, 2u);
  EXPECT_EQ(with_d.names, view.names());
}

TEST(Admission, ARunHasSeatsAndSharesForSoMany) {
  schema::Vote own = yes();
  own.global_batch = 2;
  Machine small = two_of_three(kA, own);
  EXPECT_EQ(asks(small, join(true)), "released for c to c (view 2): a batch of 2 has no share for 3 members");
}

// In its life, and a former member has its own.
TEST(Admission, ARunGivesOneSeatToEachOf127Names) {
  for (const bool is_former : {false, true}) {
    schema::NextView full = next_view({kA, kB});
    full.names = {"node-a", "node-b"};
    while (full.names.size() < schema::kMaxMembers) full.names.push_back("gone-" + std::to_string(full.names.size()));
    if (is_former) full.names.back() = "node-c";
    Machine a = running(kA, 3);
    a.disconnects(kC);
    a.receives(kB, Decide{full});
    a.connects(kC);
    EXPECT_EQ(asks(a, join(true)),
              is_former
                  ? "invite to c (view 2): run-1, view 2 of a b from 12\nquiesce"
                  : "released for c to c (view 2): run run-1 has given all of its 127 seats, and has none for node-c");
  }
}

TEST(ChooseView, AJoinerIsAddedOnlyIfNothingElseChanges) {
  schema::NextView decided = next_view({kA, kB});
  decided.names = {"node-a", "node-b"};
  const View view(decided);
  const ReadyJoiner joiner{{.seat = 2, .since = 3}, 12, "node-c"};
  const auto chosen = [&](const Promises& promises) { return View(*choose_view(view, promises, "", joiner)).size(); };
  const schema::Promise of_a = promise(kA, ballot(1, kA)), of_b = promise(kB, ballot(1, kA));
  EXPECT_EQ(chosen({{kA, of_a}, {kB, of_b}}), 3u);
  EXPECT_EQ(chosen({{kA, of_a}}), 1u) << "not all have promised";
  schema::Promise other = of_b;
  other.step = 13;
  EXPECT_EQ(chosen({{kA, of_a}, {kB, other}}), 2u) << "a node has gone on";
  other = of_b;
  other.reachable = {"node-a"};
  EXPECT_EQ(chosen({{kA, of_a}, {kB, other}}), 2u) << "node-b does not hear it";
  other = of_b;
  other.leaving = true;
  EXPECT_EQ(chosen({{kA, of_a}, {kB, other}}), 1u);
  other = of_b;
  other.accepted_in = ballot(1, kB);
  other.accepted = next_view({kB}, 12, 3);
  EXPECT_EQ(chosen({{kA, of_a}, {kB, other}}), 1u) << "an earlier ballot binds";
}

}  // namespace
}  // namespace tg::daemon

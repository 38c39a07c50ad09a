// One membership machine, event by event: which action follows, and which words a person reads.
#include "daemon/membership/membership.h"

#include <gtest/gtest.h>

#include "schema/job.h"

namespace tg::daemon {
namespace {

using schema::RunState;

constexpr std::uint64_t kKey = 77;
constexpr std::uint64_t kToken = 5;

// A machine and what it did since the last look.
class Machine {
 public:
  Machine(Rank self, std::size_t members, bool connected = true)
      : machine_({{names().begin(), names().begin() + static_cast<std::ptrdiff_t>(members)}, self}),
        self_(self),
        members_(members) {
    for (Rank rank = 0; connected && rank < members_; ++rank)
      if (rank != self_) machine_.connection(rank, true, now_ms);
  }
  static const std::vector<std::string>& names() {
    static const std::vector<std::string> all{"node-a", "node-b", "node-c", "node-d"};
    return all;
  }
  Membership* operator->() { return &machine_; }

  void look() { actions_ = machine_.take_actions(); }
  template <class Action>
  std::vector<Action> all() const {
    std::vector<Action> found;
    for (const MembershipAction& action : actions_)
      if (const auto* one = std::get_if<Action>(&action)) found.push_back(*one);
    return found;
  }
  // The only action of that kind.
  template <class Action>
  Action only() const {
    const auto found = all<Action>();
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? Action{} : found.front();
  }
  // The only frame of that kind.
  template <class Body>
  Body sent(std::vector<Rank> to, std::uint64_t key = kKey) const {
    Body body{};
    int count = 0;
    for (const SendFrame& one : all<SendFrame>()) {
      if (!std::holds_alternative<Body>(one.body)) continue;
      ++count;
      EXPECT_EQ(one.to, to);
      EXPECT_EQ(one.header.run, key);
      EXPECT_EQ(one.header.view, Membership::kView);
      body = std::get<Body>(one.body);
    }
    EXPECT_EQ(count, 1);
    return body;
  }
  std::size_t actions() const { return actions_.size(); }

  void start(const std::string& id = "run-1", std::uint64_t key = kKey) {
    machine_.start(kToken, {key, id, schema::canonical_job({}), 30'000}, now_ms);
    look();
  }
  void frame(Rank from, schema::FrameBody body, std::uint64_t key = kKey) {
    machine_.frame(from, {key, Membership::kView, 0}, body, now_ms);
    look();
  }
  void vote(const schema::Vote& vote) {
    machine_.prepared(kKey, vote, now_ms);
    look();
  }
  void tick(std::uint64_t later_ms) {
    now_ms += later_ms;
    machine_.tick(now_ms);
    look();
  }

  std::uint64_t now_ms = 1'000;

 private:
  Membership machine_;
  Rank self_;
  std::size_t members_;
  std::vector<MembershipAction> actions_;
};

schema::Vote yes() { return {true, ErrorKind::kFailed, "", 1, 2, 3, 4, 0.1, 16}; }

// Rank 0 as proposer of three, up to a point.
Machine proposing() {
  Machine a(0, 3);
  a.start();
  return a;
}
Machine running_proposer() {
  Machine a = proposing();
  a.vote(yes());
  a.frame(1, yes());
  a.frame(2, yes());
  return a;
}
// Rank 1 as a member of rank 2's run; not the one that grants.
Machine preparing() {
  Machine b(1, 3);
  b.frame(2, schema::Propose{"run-1", "steps = 5\n"});
  return b;
}
Machine voted() {
  Machine b = preparing();
  b.vote(yes());
  return b;
}
Machine running_member() {
  Machine b = voted();
  b.frame(2, schema::Commit{schema::ExchangeKind::kSharded, schema::Coding::kRaw, schema::kMostWindowBytes,
                            schema::kLargeChunkParameters});
  return b;
}

TEST(Membership, OneNodeAloneNeedsNoFrames) {
  Machine a(0, 1);
  EXPECT_FALSE(a->state());
  a.start();
  EXPECT_EQ(a.only<PrepareRun>().run.id, "run-1");
  EXPECT_EQ(a->state(), RunState::kStarting);
  a.vote(yes());
  EXPECT_EQ(a.only<BeginRun>().choice.exchange, schema::ExchangeKind::kDirect);
  EXPECT_TRUE(a.only<AnswerStart>().status.ok());
  EXPECT_TRUE(a.all<SendFrame>().empty());
  a->finished(RunState::kCompleted, "", a.now_ms);
  a.look();
  EXPECT_EQ(a.only<EndRun>().state, RunState::kCompleted);
  EXPECT_TRUE(a->idle());
}

TEST(Membership, RankZeroProposesAtOnceAndCommitsWithTheLastVote) {
  Machine a(0, 3, false);
  a.start();
  EXPECT_EQ(a.actions(), 0u);
  EXPECT_EQ(a->state(), RunState::kPending);
  a->connection(1, true, a.now_ms);
  a.look();
  EXPECT_EQ(a.actions(), 0u);
  a->connection(2, true, a.now_ms);
  a.look();
  EXPECT_EQ(a.sent<schema::Propose>({1, 2}).run_id, "run-1");
  EXPECT_EQ(a.only<PrepareRun>().run.key, kKey);
  a.frame(2, yes());
  a.vote(yes());
  EXPECT_EQ(a.actions(), 0u);
  a.frame(1, yes());
  EXPECT_EQ(a.sent<schema::Commit>({1, 2}).exchange, schema::ExchangeKind::kSharded);
  EXPECT_EQ(a.only<BeginRun>().choice.exchange, schema::ExchangeKind::kSharded);
  EXPECT_EQ(a.only<AnswerStart>().token, kToken);
  EXPECT_EQ(a->state(), RunState::kRunning);
}

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

TEST(Membership, ARefusedVoteFailsTheProposalForAllInItsOwnWords) {
  Machine a = proposing();
  a.vote(yes());
  a.frame(2, schema::Vote{false, ErrorKind::kInvalidJob, "node-c has no data in /data"});
  const auto fail = a.sent<schema::Fail>({1, 2});
  EXPECT_EQ(fail.kind, ErrorKind::kInvalidJob);
  EXPECT_EQ(fail.node, "node-c");
  EXPECT_EQ(fail.message, "node-c has no data in /data");
  EXPECT_EQ(a.only<AnswerStart>().status.error().message, fail.message);
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kInvalidJob);
  EXPECT_EQ(a.only<DropRun>().key, kKey);
  EXPECT_TRUE(a.all<EndRun>().empty());

  Machine b = voted();
  b.frame(2, fail);
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
    a.frame(2, odd);
    EXPECT_EQ(a.sent<schema::Fail>({1, 2}).message, one.message);
    EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kInvalidJob);
    EXPECT_TRUE(a->idle());
  }
}

TEST(Membership, VotesHaveADeadlineThatNamesTheMissing) {
  Machine a = proposing();
  a.frame(1, yes());
  a.tick(300'000);
  EXPECT_EQ(a.sent<schema::Fail>({1, 2}).message, "node-a, node-c did not prepare the run within 300 s");
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kTimeout);
}

TEST(Membership, ACommitAfterARefusalBeginsNothing) {
  Machine b = preparing();
  schema::Vote no;
  no.kind = ErrorKind::kInvalidJob;
  no.message = "node-b: no data";
  b.vote(no);
  b.frame(2, schema::Commit{});  // no honest proposer does that
  EXPECT_TRUE(b.all<BeginRun>().empty());
  EXPECT_EQ(b.sent<schema::Fail>({2}).node, "node-b");
}

TEST(Membership, AMemberDoesNotWaitForEver) {
  Machine b = voted();
  b.tick(299'999);
  EXPECT_EQ(b.actions(), 0u);
  b.tick(1);
  EXPECT_EQ(b.only<DropRun>().key, kKey);
  b.frame(2, schema::Commit{});  // too late: the others must know
  const auto fail = b.sent<schema::Fail>({2});
  EXPECT_EQ(fail.message, "node-b had given up waiting for the run to begin");
  EXPECT_TRUE(b->idle());

  Machine c = running_proposer();
  c.frame(1, fail);
  EXPECT_EQ(c.only<EndRun>().reason, fail.message);
}

TEST(Membership, TheProposersLossDropsAndAMembersLossFailsTheProposal) {
  for (const bool by_connection : {false, true}) {
    Machine b = by_connection ? voted() : preparing();
    if (by_connection)
      b->connection(2, false, b.now_ms);
    else
      b->lost(2, "no sign of life from node-c for 10 s", b.now_ms);
    b.look();
    EXPECT_EQ(b.only<DropRun>().key, kKey);
    EXPECT_TRUE(b.all<EndRun>().empty());
  }
  Machine a = proposing();
  a->connection(2, false, a.now_ms);
  a.look();
  EXPECT_EQ(a.sent<schema::Fail>({1, 2}).message, "node-a lost the connection to node-c");
  EXPECT_EQ(a.only<AnswerStart>().status.error().kind, ErrorKind::kUnreachable);
}

TEST(Membership, AVoteWaitsForTheConnectionsAndThenSaysNo) {
  Machine b = preparing();
  b->connection(0, false, b.now_ms);
  b.vote(yes());
  EXPECT_EQ(b.actions(), 0u);
  Machine waits = b;
  waits->connection(0, true, waits.now_ms);
  waits.look();
  EXPECT_TRUE(waits.sent<schema::Vote>({2}).accepted);

  b.tick(5'000);
  const auto vote = b.sent<schema::Vote>({2});
  EXPECT_FALSE(vote.accepted);
  EXPECT_EQ(vote.message, "node-b is not connected to node-a");
}

TEST(Membership, AVoteIsTakenBackAndTheVerdictCarriedOut) {
  Machine b = voted();
  b->connection(0, false, b.now_ms);
  b.look();
  const auto vote = b.sent<schema::Vote>({2});
  EXPECT_FALSE(vote.accepted);
  EXPECT_EQ(vote.message, "node-b lost the connection to node-a");
  Machine in_time = proposing();
  in_time.frame(2, vote);
  EXPECT_TRUE(in_time->idle());
  // The commit had left already: the run begins here and ends at once, for all.
  b.frame(2, schema::Commit{});
  EXPECT_EQ(b.all<BeginRun>().size(), 1u);
  EXPECT_EQ(b.sent<schema::Fail>({0, 2}).message, vote.message);
  EXPECT_EQ(b.only<EndRun>().reason, vote.message);
}

TEST(Membership, AFailThatOvertakesTheCommitIsNotForgotten) {
  Machine b = voted();
  b.frame(0, schema::Fail{ErrorKind::kRunFailed, "node-a", "", "node-a is out of memory"});
  EXPECT_EQ(b.actions(), 0u);
  b.frame(2, schema::Commit{});
  EXPECT_EQ(b.only<EndRun>().reason, "node-a is out of memory");
}

TEST(Membership, StrangersAreIgnored) {
  Machine a = proposing();
  a.frame(1, yes(), 99);
  a.frame(7, yes());
  a.frame(1, schema::Fail{}, 99);
  a->frame(1, {kKey, 2, 0}, yes(), a.now_ms);
  a.frame(1, schema::Hello{});
  a.vote(yes());
  a.frame(2, yes());
  EXPECT_EQ(a->state(), RunState::kStarting) << "the vote of rank 1 is still missing";

  Machine b = voted();
  b.frame(0, schema::Commit{});  // not the proposer
  EXPECT_EQ(b->state(), RunState::kStarting);
  b.frame(2, schema::Commit{}, 99);
  EXPECT_EQ(b->state(), RunState::kStarting);
  b.frame(2, schema::Vote{});
  EXPECT_EQ(b.actions(), 0u);

  Machine c = running_member();
  c.frame(0, schema::Fail{ErrorKind::kFailed, "", "", "old news"}, 99);
  c.frame(2, schema::Commit{});  // twice
  EXPECT_EQ(c->state(), RunState::kRunning);
  EXPECT_EQ(c.actions(), 0u);
}

TEST(Membership, TheFirstCauseWinsAndIsShownAsReceived) {
  Machine a = running_proposer();
  a.frame(1, schema::Fail{ErrorKind::kRunFailed, "node-c", "backward", "the gradient of fc.weight on node-c is NaN"});
  EXPECT_EQ(a.only<EndRun>().reason, "the gradient of fc.weight on node-c is NaN");
  EXPECT_TRUE(a.all<SendFrame>().empty());
  a.frame(2, schema::Fail{ErrorKind::kRunFailed, "node-b", "", "something later"});
  a->lost(1, "no sign of life from node-b for 10 s", a.now_ms);
  a->failed({ErrorKind::kFailed, "node-a", "", "later still"}, a.now_ms);
  a.look();
  EXPECT_EQ(a.actions(), 0u);
}

TEST(Membership, LossesAndErrorsOfARunGoToAll) {
  Machine b = running_member();
  b->lost(0, "no sign of life from node-a for 10 s (last seen in backward of step 12)", b.now_ms);
  b.look();
  EXPECT_EQ(b.sent<schema::Fail>({0, 2}).node, "node-a");
  EXPECT_EQ(b.only<EndRun>().state, RunState::kFailed);
  EXPECT_EQ(b.only<EndRun>().reason, "no sign of life from node-a for 10 s (last seen in backward of step 12)");

  Machine own = running_member();
  own->lost(1, "node-b is stuck in backward of step 3 for 60 s", own.now_ms);
  own.look();
  EXPECT_EQ(own.sent<schema::Fail>({0, 2}).node, "node-b");

  Machine c = running_member();
  c->failed({ErrorKind::kIo, "node-b", "save", "node-b: no space left"}, c.now_ms);
  c.look();
  EXPECT_EQ(c.sent<schema::Fail>({0, 2}).message, "node-b: no space left");
  EXPECT_EQ(c.only<EndRun>().reason, "node-b: no space left");
}

TEST(Membership, AFinishedPeerMayLeave) {
  Machine b = running_member();
  b->peer_finished(0);
  b->connection(0, false, b.now_ms);
  b.frame(0, schema::Goodbye{"node-a was shut down"}, 0);
  EXPECT_EQ(b->state(), RunState::kRunning);
  b.frame(2, schema::Goodbye{"node-c was shut down"});
  EXPECT_EQ(b.only<EndRun>().reason, "node-c was shut down");
}

TEST(Membership, StopBeforeTheRunBegins) {
  Machine pending(0, 3, false);
  pending.start();
  EXPECT_FALSE(pending->stop("run-9", pending.now_ms).ok());
  EXPECT_TRUE(pending->stop("run-1", pending.now_ms).ok());
  pending.look();
  EXPECT_EQ(pending.only<EndRun>().state, RunState::kStopped);
  EXPECT_EQ(pending.only<AnswerStart>().status.error().message, "run run-1 was stopped at node-a before it began");

  Machine a = proposing();
  EXPECT_TRUE(a->stop("run-1", a.now_ms).ok());
  a.look();
  EXPECT_EQ(a.sent<schema::Fail>({1, 2}).message, "run run-1 was stopped at node-a before it began");
  EXPECT_EQ(a.only<DropRun>().key, kKey);

  Machine b = voted();
  EXPECT_TRUE(b->stop("run-1", b.now_ms).ok());
  b.look();
  const auto vote = b.sent<schema::Vote>({2});
  EXPECT_EQ(vote.message, "run run-1 was stopped at node-b before it began");
  b.frame(2, schema::Commit{});  // it had left already: stopped like a running one
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
  Machine idle(1, 3);
  idle->shut_down(idle.now_ms);
  idle.look();
  idle.sent<schema::Goodbye>({0, 2}, 0);
  idle.start();
  EXPECT_EQ(idle.only<AnswerStart>().status.error().message, "node-b is being shut down");
  idle.frame(2, schema::Propose{"run-1", ""});
  EXPECT_FALSE(idle.sent<schema::Vote>({2}).accepted);

  Machine pending(0, 3, false);
  pending.start();
  pending->shut_down(pending.now_ms);
  pending.look();
  EXPECT_EQ(pending.only<EndRun>().state, RunState::kFailed);
  EXPECT_FALSE(pending.only<AnswerStart>().status.ok());

  Machine a = proposing();
  a->shut_down(a.now_ms);
  a.look();
  EXPECT_EQ(a.sent<schema::Fail>({1, 2}).message, "node-a was shut down");
  EXPECT_FALSE(a.only<AnswerStart>().status.ok());

  Machine b = running_member();
  b->shut_down(b.now_ms);
  b.look();
  EXPECT_EQ(b.only<EndRun>().reason, "node-b was shut down");
  const auto goodbye = b.sent<schema::Goodbye>({0, 2});

  Machine c = running_proposer();
  c.frame(1, goodbye);
  EXPECT_EQ(c.only<EndRun>().reason, "node-b was shut down");
  Machine d = proposing();
  d.frame(1, goodbye);
  EXPECT_EQ(d.only<AnswerStart>().status.error().message, "node-b was shut down");
  Machine e = voted();
  e.frame(2, schema::Goodbye{""});
  EXPECT_EQ(e.only<DropRun>().key, kKey);
}

TEST(Membership, ARefusedRunThatTheJobTextBreaksIsNotCommitted) {
  Machine a(0, 1);
  a->start(kToken, {kKey, "run-1", "steps = many\n", 30'000}, a.now_ms);
  a.vote(yes());
  EXPECT_FALSE(a.only<AnswerStart>().status.ok());
  EXPECT_TRUE(a->idle());
}

}  // namespace
}  // namespace tg::daemon

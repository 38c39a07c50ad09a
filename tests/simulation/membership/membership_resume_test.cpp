// A run is resumed: which node has which states, which state is chosen, and what may come between.
#include "tests/simulation/simulator/machine.h"

namespace tg::daemon {
namespace {

using schema::Commit;
using schema::Fail;
using schema::Goodbye;
using schema::Offer;
using schema::Resume;
using schema::RunState;
using schema::Vote;

const std::string kFound = "propose run-1 again at 900 to b c\nprepare run-1 with a b c again at 900";

// Three nodes: the proposal to resume a run fails.
std::string resume_fails(const std::string& node, const std::string& kind, const std::string& message) {
  return proposal_fails(node, kind, message);
}

Resume at(std::uint64_t step, std::uint64_t digest) {
  return {2, std::nullopt, false, schema::StateId{1, 1, step, digest}};
}

TEST(Resume, TheProposerFindsChoosesPreparesAndCommits) {
  Machine a(kA, 3, false);
  EXPECT_EQ(a.resumes({}), "");
  EXPECT_EQ(a->state(), RunState::kPending);
  EXPECT_EQ(a.connects(kB), "");
  EXPECT_EQ(a.connects(kC), "propose run-1 again to b c\nfind states of run-1");
  EXPECT_EQ(a->state(), RunState::kStarting);
  EXPECT_EQ(a.receives(kC, states({900, 600})), "");
  EXPECT_EQ(a.receives(kC, states({600})), "") << "its first offer counts";
  EXPECT_EQ(a.receives(kB, states({900, 600})), "");
  EXPECT_EQ(a.offers(states({900, 600, 300})), kFound);
  EXPECT_EQ(a->current()->resume->start, (schema::StateId{1, 1, 900, 900}));
  EXPECT_EQ(a.receives(kC, states({600})), "") << "too late";
  EXPECT_EQ(a.receives(kB, yes()), "");
  EXPECT_EQ(a.receives(kC, yes()), "");
  EXPECT_EQ(a.prepares(yes()),
            "commit sharded to b c\nbegin run-1 again at 900, sharded\nanswer run-1: RUNNING\nwrite view 1");
}

TEST(Resume, AMemberOffersPreparesAndVotes) {
  Machine b(kB, 3);
  EXPECT_EQ(b.receives(kC, to_go_on()), "find states of run-1");
  EXPECT_EQ(b->state(), RunState::kStarting);
  EXPECT_EQ(b.receives(kC, to_go_on()), "") << "it still looks";
  EXPECT_EQ(b.offers(states({900, 600})), "offer to c: 900 600");
  EXPECT_EQ(b.offers(states({300})), "") << "it has offered";
  EXPECT_EQ(b.receives(kA, to_go_on(at(600, 600))), "") << "not the proposer";
  EXPECT_EQ(b.receives(kC, to_go_on(at(600, 600))), "prepare run-1 with a b c again at 600");
  EXPECT_EQ(b.receives(kC, to_go_on(at(600, 600))), "") << "the proposer still waits";
  EXPECT_EQ(b.prepares(yes()), "vote yes to c");
  EXPECT_EQ(b.receives(kC, Commit{}), "begin run-1 again at 600, direct\nwrite view 1");
}

TEST(Resume, IsProposedAnewWithoutAChosenStateWhenALinkGetsAnotherKey) {
  Machine a = finding();
  EXPECT_EQ(a.receives(kB, states({900})), "");
  EXPECT_EQ(a.receives(kC, states({900})), "");
  EXPECT_EQ(a.offers(states({900})), kFound);
  EXPECT_EQ(a.rekeys(kC),
            "fail to b c: node-c, unreachable: the link between node-a and node-c gets another cluster key\ndrop\n"
            "start run-1 again anew within 30000 ms");
}

TEST(Resume, ARepeatedProposalIsAnsweredAgain) {
  Machine b = offering();
  EXPECT_EQ(b.receives(kC, to_go_on()), "offer to c: 900 600");
  EXPECT_EQ(b.waits(14'000), "");
  EXPECT_EQ(b.receives(kC, to_go_on()), "offer to c: 900 600");
  EXPECT_EQ(b.receives(kC, to_go_on(at(900, 900))), "prepare run-1 with a b c again at 900");
  EXPECT_EQ(b.receives(kC, to_go_on()), "") << "from before";
}

TEST(Resume, OneNodeAloneNeedsNoFrames) {
  Machine a(kA, 1);
  EXPECT_EQ(a.resumes({}), "find states of run-1");
  EXPECT_EQ(a.offers(states({40})), "prepare run-1 with a again at 40");
  EXPECT_EQ(a.prepares(yes()), "begin run-1 again at 40, direct\nanswer run-1: RUNNING\nwrite view 1");
}

TEST(Resume, OtherSeatsClaimFirst) {
  Machine b(kB, 3);
  EXPECT_EQ(b.resumes({}), "claim run-1 to a");
  EXPECT_EQ(b.receives(kA, granted()), "propose run-1 again to a c\nfind states of run-1");
  Machine a(kA, 3);
  EXPECT_EQ(a.receives(kB, schema::Claim{"run-1"}), "grant to b");
  EXPECT_EQ(a.receives(kB, to_go_on()), "find states of run-1");
  EXPECT_EQ(a.receives(kB, to_go_on(at(5, 5)), 99),
            "vote no to b (key 99): refused: run run-1 is already STARTING, "
            "proposed by node-b; wait for it, or stop it: tgctl stop run-1");
}

TEST(Resume, AStateThatNotAllHaveIsNotTaken) {
  Machine a = finding();
  a.offers(states({900, 600}));
  a.receives(kB, states({900, 600}));
  EXPECT_EQ(a.receives(kC, states({600, 300})),
            "propose run-1 again at 600 to b c\nprepare run-1 with a b c again at 600");
}

TEST(Resume, WithoutACommonStateTheMessageListsAllOffers) {
  Machine a = finding();
  a.offers(states({900, 600}));
  a.receives(kB, states({900}));
  Offer none;
  none.problem = "node-c: checkpoint-000001-000001-0000000900.safetensors is torn";
  EXPECT_EQ(
      a.receives(kC, none),
      resume_fails("node-c", "not found",
                   "run run-1 cannot resume: not every node has a state: node-a has step 900, 600; node-b has step "
                   "900; node-c has none (node-c: checkpoint-000001-000001-0000000900.safetensors is torn); start a "
                   "new run, or copy a state's file from another node's folder of this run there"));
  EXPECT_TRUE(a->idle());
}

// The run resumes with the nodes that have the newest state; the others join it then.
Machine finding_with_joins() {
  Machine a(kA, 3);
  a.resumes({}, "run-1", kKey, {}, schema::canonical_job({}));
  return a;
}

TEST(Resume, ResumesWithTheHoldersOfTheStateAndTheOthersJoin) {
  Machine a = finding_with_joins();
  a.offers(states({900}));
  a.receives(kB, Offer{{}, "node-b has no run run-1"});
  EXPECT_EQ(a.receives(kC, states({900})),
            "propose run-1 again at 900 with a c to b c\nprepare run-1 with a c again at 900");
  EXPECT_EQ(a.disconnects(kB), "") << "it is none of them";
  EXPECT_EQ(a.prepares(yes()), "");
  const std::string begun = a.receives(kC, yes());
  EXPECT_NE(begun.find("begin run-1 again at 900"), std::string::npos) << begun;
  EXPECT_EQ(a->view().seats(), (std::vector<Seat>{kA, kC}));
}

TEST(Resume, AProposerWithoutTheStateCommitsForTheOthers) {
  Machine a = finding_with_joins();
  a.offers(Offer{{}, "node-a has no run run-1"});
  a.receives(kB, states({900}));
  EXPECT_EQ(a.receives(kC, states({900})), "propose run-1 again at 900 with b c to b c");
  EXPECT_EQ(a.receives(kB, yes()), "");
  const std::string begun = a.receives(kC, yes());
  EXPECT_NE(begun.find("commit"), std::string::npos) << begun;
  EXPECT_NE(begun.find("\ndrop\nanswer run-1: RUNNING"), std::string::npos) << begun;
  EXPECT_TRUE(a->idle());
}

TEST(Resume, ANodeThatIsNoMemberDropsTheProposal) {
  Machine b = offering();
  schema::Propose without = to_go_on(at(900, 900));
  without.members = {0, 2};
  EXPECT_EQ(b.receives(kC, without), "drop");
  Machine member = offering();
  without.members = {1, 2};
  EXPECT_EQ(member.receives(kC, without), "prepare run-1 with b c again at 900");
}

TEST(Resume, DifferingStatesNameBothNodesAndBothValues) {
  Machine a = finding();
  a.offers(states({900, 600}));
  a.receives(kB, states({900, 600}));
  EXPECT_EQ(a.receives(kC, states({900, 600}, 1)),
            resume_fails("node-c", "corrupt",
                         "run run-1 cannot resume: states of step 900 differ: node-a has 0000000000000384, node-c has "
                         "0000000000000385; take an earlier one with --from: 600"));
}

TEST(Resume, AnEarlierStateIsChosenOnRequest) {
  Machine a(kA, 3);
  EXPECT_EQ(a.resumes({2, 600}), "propose run-1 again from 600 to b c\nfind states of run-1");
  a.receives(kB, states({900, 600}));
  a.receives(kC, states({900, 600}));
  EXPECT_EQ(a.offers(states({900, 600})),
            "propose run-1 again from 600 at 600 to b c\nprepare run-1 with a b c again from 600 at 600");

  Machine other(kA, 3);
  other.resumes({2, 700});
  other.receives(kB, states({900, 600}));
  other.receives(kC, states({900, 600}));
  EXPECT_EQ(other.offers(states({900, 600})),
            resume_fails("", "not found",
                         "run run-1 cannot resume: not every node has the state of step 700: node-a has step 900, 600; "
                         "node-b has step 900, 600; node-c has step 900, 600; all have step 900, 600: choose with "
                         "--from"));
}

TEST(Resume, AnAutomaticResumeDoesNotRepeatAStateThatFailed) {
  const auto chooses = [](std::uint64_t in_vain) {
    Machine a(kA, 3);
    a.resumes({}, "run-1", kKey, schema::StateId{7, 1, in_vain, in_vain});
    a.receives(kB, states({900, 600}));
    a.receives(kC, states({900, 600}));
    return a.offers(states({900, 600}));
  };
  EXPECT_EQ(chooses(900),
            resume_fails("", "refused",
                         "it has begun repeatedly at step 900 without reaching its next checkpoint; tgctl resume "
                         "run-1 begins there once more"));
  EXPECT_EQ(chooses(600), kFound) << "it came further since";
}

TEST(Resume, AnOlderBeginningIsRefused) {
  Machine b = looking();
  const std::string no = "node-b knows a later lineage of run run-1 than node-c does; ask node-b, with --address";
  EXPECT_EQ(b.offers(states({900}), 2), "vote no to c: refused: " + no);
  Machine a = finding();
  EXPECT_EQ(a.receives(kB, b.sent<Vote>()), resume_fails("node-b", "refused", no));
  EXPECT_EQ(b.receives(kC, a.sent<Fail>()), "drop");
}

TEST(Resume, OnlyOfferedStatesArePrepared) {
  Machine b = offering();
  const std::string no = "node-b has not offered the state of step 900 of run run-1; resume it again";
  EXPECT_EQ(b.receives(kC, to_go_on(at(900, 901))), "vote no to c: refused: " + no) << "other bits";
  EXPECT_EQ(b.receives(kC, to_go_on(at(900, 901))), "") << "it has said so";
  EXPECT_EQ(offering().receives(kC, to_go_on(at(300, 300))),
            "vote no to c: refused: node-b has not offered the state of step 300 of run run-1; resume it again");
  Machine idle(kB, 3);
  EXPECT_EQ(idle.receives(kC, to_go_on(at(900, 900))),
            "vote no to c: refused: node-b had given up waiting for run run-1 to resume; resume it again");
}

TEST(Resume, WeightsAreThoseOfTheRun) {
  Machine b(kB, 3, true, 5);
  EXPECT_EQ(b.receives(kC, to_go_on()), "find states of run-1") << "whatever it weighs by now";
  Machine other(kB, 3);
  schema::Propose grown = to_go_on();
  grown.weights = {1, 1, 1, 1};
  grown.names = {"node-a", "node-b", "node-c", "node-x"};
  EXPECT_EQ(other.receives(kC, grown),
            "vote no to c: refused: no peer line of node-b names node-x, which node-c asks to take part in run run-1; "
            "add that line to the tgd.conf of node-b");
  grown.members = {0, 1, 2};
  EXPECT_EQ(other.receives(kC, grown), "find states of run-1") << "a former member is not asked";
  Machine a(kA, 3, false);
  a.resumes({});
  a.connects(kB, 7);
  EXPECT_EQ(a.connects(kC, 9), "propose run-1 again to b c\nfind states of run-1");
}

TEST(Resume, SpeedsThatAreMeasuredAnewChangeNoWeights) {
  Votes votes({"node-a", "node-b"});
  Vote slow = yes();
  slow.step_seconds *= 4;
  votes.take(kA, yes());
  votes.take(kB, slow);
  const auto weights_of = [&](const RunIdentity& run) {
    return View(first_view(votes.decide(run, View::of_all(run.weights))->commit)).weights();
  };
  RunIdentity run{.run_key = kKey, .id = "run-1", .spec = "split = speed\n", .weights = {700, 300}};
  EXPECT_EQ(weights_of(run), (Per<Rank, std::uint16_t>{1000, 250}));
  run.resume = schema::Resume{.lineage = 2, .from_step = {}};
  EXPECT_EQ(weights_of(run), (Per<Rank, std::uint16_t>{700, 300}));
}

TEST(Resume, OddVotesAndOffersChangeNothing) {
  Machine a = finding();
  EXPECT_EQ(a.receives(kB, yes()), "") << "there is nothing to agree to yet";
  EXPECT_EQ(a.receives(kB, states({900}), 99), "");
  EXPECT_EQ(a.prepares(yes()), "");
  Machine starting = proposing();
  EXPECT_EQ(starting.receives(kB, states({900})), "") << "of a new run";
  EXPECT_EQ(starting.offers(states({900})), "");
  EXPECT_EQ(running_member().receives(kC, states({900})), "");
  Machine b = looking();
  EXPECT_EQ(b.receives(kC, Commit{}),
            "fail to c: node-b, run failed: node-b had given up waiting for the run to begin");
}

// --- losses at each point ---

TEST(Resume, ALostProposerIsNotWaitedFor) {
  for (const Machine& at_some_point : {looking(), offering()}) {
    Machine lost = at_some_point, cut = at_some_point, left = at_some_point, failed = at_some_point;
    EXPECT_EQ(lost.loses(kC, "no sign of life from node-c for 10 s"), "drop");
    EXPECT_EQ(cut.disconnects(kC), "drop");
    EXPECT_EQ(left.receives(kC, Goodbye{"node-c was shut down"}), "drop");
    EXPECT_EQ(failed.receives(kC, Fail{ErrorKind::kNotFound, "node-a", "prepare", "nothing"}), "drop");
    Machine stuck = at_some_point;
    EXPECT_EQ(stuck.waits(14'999), "");
    EXPECT_EQ(stuck.waits(1), "drop");
    EXPECT_TRUE(stuck->idle());
    EXPECT_EQ(stuck.offers(states({900})), "") << "too late";
  }
}

TEST(Resume, AMemberThatIsLostEndsTheResumeForAll) {
  EXPECT_EQ(finding().disconnects(kC), resume_fails("node-c", "unreachable", "node-a lost the connection to node-c"));
  EXPECT_EQ(finding().receives(kB, Goodbye{"node-b was shut down"}, 0),
            resume_fails("node-b", "unreachable", "node-b was shut down"));
  const std::string silent = "no sign of life from node-a for 10 s";
  for (Machine b : {looking(), offering()}) {
    Machine again = b;
    EXPECT_EQ(again.disconnects(kA), "") << "no frame of it is due";
    EXPECT_EQ(b.loses(kA, silent), "vote no to c: unreachable: " + silent);
    EXPECT_EQ(b.receives(kC, to_go_on(at(900, 900))), "") << "it has left before";
    EXPECT_EQ(b.receives(kC, Fail{}), "drop");
  }
}

TEST(Resume, ANodeThatStillSearchesIsWaitedFor) {
  Machine a = finding(), b = looking();
  a.offers(states({900}));
  a.receives(kB, states({900}));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(a.makes_progress(kC), "");
    EXPECT_EQ(a.waits(14'000), "propose run-1 again to b c");
    EXPECT_EQ(b.makes_progress(kB), "");
    EXPECT_EQ(b.waits(14'000), "");
    EXPECT_EQ(b.receives(kC, to_go_on()), "");
  }
  EXPECT_EQ(a.makes_progress(kB), "") << "it has offered: no node waits for it";
  EXPECT_EQ(a.waits(286'000),
            resume_fails("node-c", "timeout", "node-c made no progress in finding the run's states for 300 s"));
}

TEST(Resume, AResumeWithoutPeersLeavesTheRecord) {
  Machine a(kA, 2, false);
  EXPECT_EQ(a.resumes({}), "");
  const std::string absent = "node-b did not connect within 30 s; is it running and reachable?";
  EXPECT_EQ(a.waits(30'000), "answer run-1: run failed: " + absent + "\ndrop") << "no end is recorded";
  Machine stopped(kA, 2, false);
  stopped.resumes({});
  EXPECT_EQ(stopped.stops(), "answer run-1: refused: run run-1 was stopped at node-a before it began\ndrop");
}

TEST(Resume, AStopBeforeTheRunContinues) {
  const std::string at_a = "run run-1 was stopped at node-a before it began";
  EXPECT_EQ(finding().stops(), resume_fails("node-a", "refused", at_a));
  for (Machine b : {looking(), offering()}) {
    EXPECT_EQ(b.stops(), "vote no to c: refused: run run-1 was stopped at node-b before it began");
    EXPECT_EQ(b.offers(states({900})), "") << "its answer is no";
    EXPECT_EQ(b.receives(kC, to_go_on(at(900, 900))), "");
    EXPECT_EQ(b.waits(5'000), "drop");
  }
}

TEST(Resume, ShuttingDownWhileItLooks) {
  EXPECT_EQ(finding().shuts_down(),
            resume_fails("node-a", "refused", "node-a was shut down") + "\ngoodbye to b c: node-a was shut down");
  EXPECT_EQ(looking().shuts_down(), "drop\ngoodbye to a c: node-b was shut down");
}

// --- two at once ---

TEST(Resume, OneOfTwoResumesOrOfAResumeAndAStartProceeds) {
  Machine a = finding();
  const std::string taken =
      "run run-1 is already STARTING, proposed by node-a; wait for it, or stop it: tgctl stop run-1";
  EXPECT_EQ(a.receives(kC, schema::Claim{"run-1"}, 88), "refuse to c (key 88): " + taken)
      << "the same run, another key";
  EXPECT_EQ(a.receives(kB, schema::Claim{"run-2"}, 99), "refuse to b (key 99): " + taken);
  EXPECT_EQ(a.start("run-2", 99), "answer run-2: refused: " + taken);

  // node-b's own start was on its way.
  Machine b(kB, 3);
  EXPECT_EQ(b.start("run-2", 88), "claim run-2 to a (key 88)");
  EXPECT_EQ(
      b.receives(kC, to_go_on()),
      "fail to a (key 88): node-b, refused: the start was withdrawn\nanswer run-2: refused: run run-1 is already "
      "STARTING, proposed by node-c; wait for it, or stop it: tgctl stop run-1\ndrop (key 88)\nfind states of run-1");

  // Its own resume of the same run.
  Machine same(kB, 3);
  EXPECT_EQ(same.resumes({}, "run-1", 88), "claim run-1 to a (key 88)");
  EXPECT_EQ(
      same.receives(kC, to_go_on()),
      "fail to a (key 88): node-b, refused: the start was withdrawn\nanswer run-1: refused: run run-1 is already "
      "STARTING, proposed by node-c; wait for it, or stop it: tgctl stop run-1\ndrop (key 88)\nfind states of run-1");
}

// --- after it has gone on ---

TEST(Resume, AnEndOfAnOlderKeyChangesNothing) {
  constexpr std::uint64_t kOldKey = 70;
  Machine b(kB, 3);
  PastRun run{"run-1", Per<Seat, bool>(3, true), {}};
  run.end.truth = an_end(RunState::kInterrupted, 90, "node-b ended unexpectedly", schema::SaveState::kNothing, 0);
  run.end.members.assign(3, std::nullopt);
  run.end.members[kB] = run.end.truth;
  EXPECT_EQ(b.remembers(run, kOldKey), "");
  EXPECT_EQ(
      b.receives(kA, an_end(RunState::kFailed, 80, "out of memory"), kOldKey),
      "record (key 70): FAILED: out of memory (a saved, b nothing saved, c ?)\nended to a c (key 70): FAILED, out of "
      "memory, nothing saved");
  b.receives(kC, to_go_on());
  b.offers(states({900}));
  b.receives(kC, to_go_on(at(900, 900)));
  b.prepares(yes());
  EXPECT_EQ(b.receives(kC, Commit{}), "begin run-1 again at 900, direct\nwrite view 1");
  EXPECT_EQ(b.receives(kA, an_end(RunState::kCompleted, 40), kOldKey), "") << "it begins anew";
  b.disconnects(kA);
  EXPECT_EQ(b.connects(kA), "prepare 1b to a c\nseal") << "nothing is asked of the old one";
}

}  // namespace
}  // namespace tg::daemon

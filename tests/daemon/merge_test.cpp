#include "daemon/control/merge.h"

#include <gtest/gtest.h>

#include "run_samples.h"

namespace tg::daemon {
namespace {

using schema::MemberStatus;
using schema::MeshStatus;
using schema::Pick;
using schema::RunState;
using schema::RunStatus;

// A run as `node` reports it: its own row, and rows of the others with a digest that it cannot know.
RunStatus told(const std::string& node, const std::string& id, RunState state, std::int64_t since_ms = 1000) {
  RunStatus run;
  run.id = id;
  run.state = state;
  run.since_ms = since_ms;
  run.started_ms = 500;
  run.reason = "says " + node;
  run.step = 10;
  for (const char* name : {"node-a", "node-b", "node-c"}) {
    MemberStatus row;
    row.node = name;
    row.state = state;
    row.digest = name == node ? 0xd1 : 0xbad;
    row.digest_step = 10;
    row.step = name == node ? 10 : 3;
    run.members.push_back(row);
  }
  return run;
}

MeshStatus mesh(const std::string& node, std::vector<RunStatus> runs) {
  MeshStatus status;
  status.node = node;
  for (const char* name : {"node-a", "node-b", "node-c"}) {
    status.nodes.push_back(
        {name, "127.0.0.1:7701", name == node ? schema::NodeState::kUp : schema::NodeState::kUnreachable, ""});
  }
  status.runs = std::move(runs);
  return status;
}

TEST(Merge, AnAuthoritativeStateBeatsOneThatHasNotLearnedIt) {
  RunStatus fact = told("node-b", "r", RunState::kCompleted, 2000);
  fact.reason.clear();
  const MeshStatus merged =
      merge_statuses(mesh("node-a", {told("node-a", "r", RunState::kFailed)}),
                     {mesh("node-b", {fact}), mesh("node-c", {told("node-c", "r", RunState::kFailed)})});
  EXPECT_EQ(merged.runs[0].state, RunState::kCompleted);
  EXPECT_EQ(merged.runs[0].reason, "");
  EXPECT_EQ(merged.runs[0].since_ms, 2000);
  EXPECT_EQ(merged.runs[0].members[0].digest, 0xd1u) << "the row is still its own";
}

TEST(Merge, AFailureBeatsAnInterruption) {
  const MeshStatus merged = merge_statuses(mesh("node-a", {told("node-a", "r", RunState::kInterrupted, 900)}),
                                           {mesh("node-b", {told("node-b", "r", RunState::kFailed, 1000)})});
  EXPECT_EQ(merged.runs[0].state, RunState::kFailed);
  EXPECT_EQ(merged.runs[0].reason, "says node-b");
  EXPECT_EQ(merged.runs[0].since_ms, 1000);
  const MeshStatus both = merge_statuses(mesh("node-a", {told("node-a", "r", RunState::kInterrupted, 900)}),
                                         {mesh("node-b", {told("node-b", "r", RunState::kInterrupted, 800)})});
  EXPECT_EQ(both.runs[0].reason, "says node-b") << "of equals the first";
}

TEST(Merge, TheLatestLineageIsTheRun) {
  RunStatus resumed = told("node-b", "r", RunState::kRunning, 5000);
  resumed.lineage = 2;
  resumed.from_step = 7;
  for (const RunState before : {RunState::kInterrupted, RunState::kFailed, RunState::kCompleted, RunState::kRunning}) {
    const RunStatus old = told("node-a", "r", before);
    for (const MeshStatus& merged : {merge_statuses(mesh("node-a", {old}), {mesh("node-b", {resumed})}),
                                     merge_statuses(mesh("node-b", {resumed}), {mesh("node-a", {old})})}) {
      EXPECT_EQ(merged.runs[0].state, RunState::kRunning);
      EXPECT_EQ(merged.runs[0].lineage, 2u);
      EXPECT_EQ(merged.runs[0].from_step, 7u);
      EXPECT_EQ(merged.runs[0].reason.find("node-a has lineage 1 of it at step 10; this is lineage 2, from step 7") !=
                    std::string::npos,
                before == RunState::kCompleted || before == RunState::kRunning);
      EXPECT_EQ(merged.runs[0].members[0].state, before) << "what a node says of itself";
      EXPECT_EQ(merged.runs[0].members[1].state, RunState::kRunning);
    }
  }
}

// It has a state that the others gave up.
TEST(Merge, ANodeThatMissedALineageIsNotAMemberAtItsEnd) {
  RunStatus ended = told("node-b", "r", RunState::kCompleted, 5000);
  ended.lineage = 2;
  ended.members.erase(ended.members.begin());
  const RunStatus missed = told("node-a", "r", RunState::kInterrupted);
  for (const MeshStatus& merged : {merge_statuses(mesh("node-a", {missed}), {mesh("node-b", {ended})}),
                                   merge_statuses(mesh("node-b", {ended}), {mesh("node-a", {missed})})}) {
    ASSERT_EQ(merged.runs[0].members.size(), 2u);
    EXPECT_EQ(merged.runs[0].members[0].node, "node-b");
    EXPECT_EQ(merged.runs[0].members[1].node, "node-c");
  }
}

TEST(Merge, MembersThatCouldNotSaveAreNamedInTheReason) {
  RunStatus a = told("node-a", "r", RunState::kCompleted), b = told("node-b", "r", RunState::kCompleted);
  a.reason.clear();
  a.members[0].save = schema::SaveState::kSaved;
  a.members[1].save = schema::SaveState::kNotSaved;
  a.members[1].problem = "no space";
  a.members[2].save = schema::SaveState::kUnknown;
  const auto reason = [&] { return merge_statuses(mesh("node-a", {a}), {mesh("node-b", {b})}).runs[0].reason; };
  EXPECT_EQ(reason(), "node-b could not save: no space; node-c was lost before it reported whether it had saved")
      << "node-b itself waits for the verdict, and says nothing yet";
  b.members[1].save = schema::SaveState::kInMemory;
  b.members[1].problem = "no space";
  EXPECT_EQ(reason().substr(0, 82),
            "node-b could not save (no space) and has the state in memory; fetch it; node-c was");
  b.members[1].save = schema::SaveState::kSaved;
  a.members[2].save = schema::SaveState::kNothing;
  EXPECT_EQ(reason(), "node-c ended before it had saved");
  a.state = b.state = RunState::kFailed;
  a.reason = "node-c was lost";
  EXPECT_EQ(reason(), "node-c was lost") << "that says it already";
}

TEST(Merge, AWarningIsShownIfTheAskedNodeHasNone) {
  RunStatus own = told("node-a", "r", RunState::kRunning), other = told("node-b", "r", RunState::kStopping);
  own.reason.clear();
  const auto reason = [&] { return merge_statuses(mesh("node-a", {own}), {mesh("node-b", {other})}).runs[0].reason; };
  EXPECT_EQ(reason(), "") << "of another state";
  other.state = RunState::kRunning;
  EXPECT_EQ(reason(), "says node-b");
}

TEST(Merge, EveryNodeReportsItsOwnRow) {
  const MeshStatus merged = merge_statuses(mesh("node-b", {told("node-b", "r", RunState::kRunning)}),
                                           {mesh("node-a", {told("node-a", "r", RunState::kRunning)}),
                                            mesh("node-c", {told("node-c", "r", RunState::kStopping)})});
  EXPECT_EQ(merged.node, "node-b");
  ASSERT_EQ(merged.runs.size(), 1u);
  const RunStatus& run = merged.runs[0];
  EXPECT_EQ(run.reason, "says node-b") << "the asked node's own view first";
  EXPECT_EQ(run.state, RunState::kRunning);
  ASSERT_EQ(run.members.size(), 3u);
  for (const MemberStatus& row : run.members) EXPECT_EQ(row.digest, 0xd1u) << row.node;
  EXPECT_EQ(run.members[2].state, RunState::kStopping);
  for (const auto& node : merged.nodes) EXPECT_EQ(node.state, schema::NodeState::kUp) << node.name;
}

TEST(Merge, WaitSharesAreReportedByTheOthers) {
  RunStatus a = told("node-a", "r", RunState::kRunning), b = told("node-b", "r", RunState::kRunning),
            c = told("node-c", "r", RunState::kRunning);
  b.members[1].data_wait_share = 0.25;  // a member's own value
  a.members[1].wait_share = 0.9;        // node-a waited for node-b most of the time
  a.members[2].wait_share = 0.1;
  b.members[2].wait_share = 0.3;
  c.members[1].wait_share = 0.5;
  const MeshStatus merged = merge_statuses(mesh("node-a", {a}), {mesh("node-b", {b}), mesh("node-c", {c})});
  const std::vector<MemberStatus>& rows = merged.runs[0].members;
  EXPECT_EQ(rows[1].data_wait_share, 0.25);
  EXPECT_NEAR(rows[0].wait_share, 0, 1e-12);
  EXPECT_NEAR(rows[1].wait_share, (0.9 + 0.5) / 2, 1e-12);
  EXPECT_NEAR(rows[2].wait_share, (0.1 + 0.3) / 2, 1e-12);
}

TEST(Merge, ASilentNodeKeepsARowWithoutADigest) {
  const MeshStatus merged = merge_statuses(mesh("node-a", {told("node-a", "r", RunState::kRunning)}),
                                           {mesh("node-b", {told("node-b", "r", RunState::kRunning)})});
  const RunStatus& run = merged.runs.at(0);
  ASSERT_EQ(run.members.size(), 3u);
  EXPECT_EQ(run.members[1].digest, 0xd1u);
  EXPECT_EQ(run.members[2].node, "node-c");
  EXPECT_EQ(run.members[2].digest, 0u);
  EXPECT_EQ(run.members[2].digest_step, 0u);
  EXPECT_EQ(merged.nodes[1].state, schema::NodeState::kUp);
  EXPECT_EQ(merged.nodes[2].state, schema::NodeState::kUnreachable);
}

TEST(Merge, ANodeThatDoesNotReportTheRunHasNoPhaseAndNoSavedState) {
  RunStatus a = told("node-a", "r", RunState::kPaused), b = told("node-b", "r", RunState::kPaused);
  a.members[2].phase = b.members[2].phase = schema::Phase::kForward;
  a.members[2].phase_limit_ms = 60'000;
  const auto row_of_c = [&](const std::vector<MeshStatus>& answers) {
    return merge_statuses(mesh("node-a", {a}), answers).runs.at(0).members.at(2);
  };
  EXPECT_EQ(row_of_c({mesh("node-b", {b})}).problem, "does not answer");
  EXPECT_EQ(row_of_c({mesh("node-b", {b})}).phase, schema::Phase::kIdle);
  EXPECT_EQ(row_of_c({mesh("node-b", {b})}).phase_limit_ms, 0u);
  EXPECT_EQ(row_of_c({mesh("node-b", {b}), mesh("node-c", {})}).problem, "has no copy of the run") << "it was wiped";
  EXPECT_EQ(row_of_c({mesh("node-b", {b}), mesh("node-c", {told("node-c", "r", RunState::kPaused)})}).problem, "");
  a.state = b.state = RunState::kStopped;
  a.members[2].save = schema::SaveState::kSaved;
  EXPECT_EQ(row_of_c({mesh("node-b", {b})}).save, schema::SaveState::kSaved) << "on its disk, as far as is known";
  EXPECT_EQ(row_of_c({mesh("node-b", {b}), mesh("node-c", {})}).save, schema::SaveState::kNone);
}

// node-c left node-a and node-b at step 8.
RunStatus told_without_c(const std::string& node) {
  RunStatus run = told(node, "r", RunState::kRunning);
  run.view = 2;
  run.members.pop_back();
  run.departed = {{"node-c", 2000, 8, "no sign of life from node-c for 5 s"}};
  return run;
}

TEST(Merge, ALaterViewIsTheRunWhicheverNodeIsAsked) {
  for (const RunState behind : {RunState::kRunning, RunState::kPaused, RunState::kInterrupted}) {
    const MeshStatus a = mesh("node-a", {told_without_c("node-a")}), b = mesh("node-b", {told_without_c("node-b")}),
                     c = mesh("node-c", {told("node-c", "r", behind)});
    for (const MeshStatus& merged :
         {merge_statuses(a, {b, c}), merge_statuses(b, {c, a}), merge_statuses(c, {a, b}), merge_statuses(c, {b, a})}) {
      const RunStatus& run = merged.runs.at(0);
      EXPECT_EQ(run.state, RunState::kRunning);
      EXPECT_EQ(run.view, 2u);
      ASSERT_EQ(run.members.size(), 2u) << "who left is no member";
      for (const MemberStatus& row : run.members) EXPECT_EQ(row.digest, 0xd1u) << row.node;
      ASSERT_EQ(run.departed.size(), 1u);
      EXPECT_EQ(run.departed[0].step, 8u);
    }
  }
}

TEST(Merge, AMemberOfTheLaterViewThatDoesNotAnswerKeepsItsRow) {
  const MeshStatus merged = merge_statuses(mesh("node-c", {told("node-c", "r", RunState::kInterrupted)}),
                                           {mesh("node-b", {told_without_c("node-b")})});
  const RunStatus& run = merged.runs.at(0);
  ASSERT_EQ(run.members.size(), 2u);
  EXPECT_EQ(run.members[0].node, "node-a");
  EXPECT_EQ(run.members[0].digest, 0u);
  EXPECT_EQ(run.members[1].digest, 0xd1u);
}

TEST(Merge, ADepartedNodeCountsNeitherForSavingNorForWaiting) {
  RunStatus a = told_without_c("node-a"), b = told_without_c("node-b"), c = told("node-c", "r", RunState::kCompleted);
  a.state = b.state = RunState::kCompleted;
  a.reason = b.reason = "";
  a.members[1].wait_share = 0.5;
  c.members[2].save = schema::SaveState::kNothing;
  const MeshStatus merged = merge_statuses(mesh("node-a", {a}), {mesh("node-b", {b}), mesh("node-c", {c})});
  EXPECT_EQ(merged.runs[0].reason, "");
  EXPECT_TRUE(merged.runs[0].saved_by_all());
  EXPECT_NEAR(merged.runs[0].members[1].wait_share, 0.5, 1e-12);
}

TEST(Merge, ARunIsWhatItsMembersSayNotANewcomer) {
  RunStatus joins = told("node-a", "r", RunState::kStarting), on = told("node-b", "r", RunState::kRunning);
  joins.step = joins.members[0].step = 0;
  on.step = 700;
  for (const std::uint32_t lineage : {1u, 2u}) {
    on.lineage = lineage;
    const RunStatus run = merge_statuses(mesh("node-a", {joins}), {mesh("node-b", {on})}).runs.at(0);
    EXPECT_EQ(run.state, RunState::kRunning);
    EXPECT_EQ(run.step, 700u);
    EXPECT_EQ(run.members.at(0).state, RunState::kStarting);
    EXPECT_EQ(run.members.at(0).problem, "");
  }
}

TEST(Merge, InOneViewANodeThatContinuesBeatsOneThatLeft) {
  const MeshStatus left = mesh("node-a", {told("node-a", "r", RunState::kInterrupted)}),
                   paused = mesh("node-b", {told("node-b", "r", RunState::kPaused)});
  for (const MeshStatus& merged : {merge_statuses(left, {paused}), merge_statuses(paused, {left})}) {
    EXPECT_EQ(merged.runs[0].state, RunState::kPaused);
    EXPECT_EQ(merged.runs[0].reason, "says node-b");
    EXPECT_EQ(merged.runs[0].members[0].state, RunState::kInterrupted);
  }
}

// Only one pair of nodes is disconnected: the asked node sees both, but they could not be in one run.
TEST(Merge, ANodeThatAnotherOneCannotReachIsNotUp) {
  MeshStatus own = mesh("node-a", {});
  for (auto& node : own.nodes) node.state = schema::NodeState::kUp;
  MeshStatus answer = mesh("node-b", {});
  answer.nodes[2] = {"node-c", "127.0.0.1:7701", schema::NodeState::kNoLink, "its mesh port cannot be reached"};
  const MeshStatus merged = merge_statuses(own, {answer, mesh("node-c", {})});
  EXPECT_EQ(merged.nodes[1].state, schema::NodeState::kUp);
  EXPECT_EQ(merged.nodes[2].state, schema::NodeState::kNoLink);
  EXPECT_EQ(merged.nodes[2].problem, "as seen by node-b: its mesh port cannot be reached");
}

TEST(Merge, ANodeThatAnswersIsAliveButUpOnlyWithALink) {
  MeshStatus own = mesh("node-a", {});
  own.nodes[2].problem = "builds differ";
  const MeshStatus merged = merge_statuses(own, {mesh("node-b", {}), mesh("node-c", {})});
  EXPECT_EQ(merged.nodes[1].state, schema::NodeState::kUp);
  EXPECT_EQ(merged.nodes[2].state, schema::NodeState::kNoLink);
}

TEST(Merge, ANodeThatDoesNotKnowTheRunIsIgnored) {
  const MeshStatus merged =
      merge_statuses(mesh("node-a", {}), {mesh("node-b", {told("node-b", "r", RunState::kCompleted)}),
                                          mesh("node-c", {told("node-c", "r", RunState::kFailed)})});
  const RunStatus& run = merged.runs.at(0);
  EXPECT_EQ(run.state, RunState::kCompleted) << "without an own view, the first answer's";
  EXPECT_EQ(run.members[0].digest, 0u);
  EXPECT_EQ(run.members[1].digest, 0xd1u);
  EXPECT_EQ(run.members[2].digest, 0xd1u);
  EXPECT_EQ(run.members[2].state, RunState::kFailed);
}

TEST(Merge, ARowThatTheBaseLacksIsAdded) {
  RunStatus own = told("node-a", "r", RunState::kRunning);
  own.members.resize(1);
  const MeshStatus merged =
      merge_statuses(mesh("node-a", {own}), {mesh("node-c", {told("node-c", "r", RunState::kRunning)})});
  ASSERT_EQ(merged.runs.at(0).members.size(), 2u);
  EXPECT_EQ(merged.runs[0].members[1].node, "node-c");
}

TEST(Merge, TheFirstCauseIsShown) {
  const MeshStatus merged = merge_statuses(mesh("node-b", {told("node-b", "r", RunState::kFailed, 2000)}),
                                           {mesh("node-a", {told("node-a", "r", RunState::kFailed, 3000)}),
                                            mesh("node-c", {told("node-c", "r", RunState::kFailed, 1500)})});
  EXPECT_EQ(merged.runs.at(0).reason, "says node-c");
  EXPECT_EQ(merged.runs.at(0).since_ms, 1500);
}

TEST(Merge, AFailedRunHasTheFiguresOfTheNodeThatCameFurthest) {
  RunStatus crashed = told("node-b", "r", RunState::kFailed, 9000),
            survivor = told("node-a", "r", RunState::kFailed, 2000);
  crashed.step = 0;
  crashed.digest = 0;
  survivor.step = 812;
  survivor.digest = 0xd1;
  survivor.loss = 0.5;
  const MeshStatus merged = merge_statuses(mesh("node-b", {crashed}), {mesh("node-a", {survivor})});
  const RunStatus& run = merged.runs.at(0);
  EXPECT_EQ(run.step, 812u);
  EXPECT_EQ(run.digest, 0xd1u);
  EXPECT_EQ(run.loss, 0.5);
  EXPECT_EQ(run.reason, "says node-a");
  ASSERT_EQ(run.members.size(), 3u);
  EXPECT_EQ(run.members[0].digest, 0xd1u);
  EXPECT_EQ(run.members[2].digest, 0u);
  crashed.state = RunState::kRunning;
  EXPECT_EQ(merge_statuses(mesh("node-b", {crashed}), {mesh("node-a", {survivor})}).runs.at(0).step, 0u)
      << "only of a failed one";
}

TEST(Merge, AnEarlierStateOfAnotherKindIsNotTheCause) {
  const MeshStatus merged = merge_statuses(mesh("node-b", {told("node-b", "r", RunState::kFailed, 2000)}),
                                           {mesh("node-a", {told("node-a", "r", RunState::kRunning, 100)})});
  EXPECT_EQ(merged.runs.at(0).reason, "says node-b");
}

TEST(Merge, NewestRunsComeFirst) {
  RunStatus old_run = told("node-a", "old", RunState::kStopped), new_run = told("node-b", "new", RunState::kRunning);
  new_run.started_ms = old_run.started_ms + 1;
  const MeshStatus merged = merge_statuses(mesh("node-a", {old_run}), {mesh("node-b", {new_run})});
  ASSERT_EQ(merged.runs.size(), 2u);
  EXPECT_EQ(merged.runs[0].id, "new");
}

class SelectRun : public testing::Test {
 protected:
  MeshStatus known(bool all_up = true) {
    MeshStatus status =
        mesh("node-a", {told("node-a", "abc", RunState::kRunning), told("node-a", "abcd", RunState::kRunning),
                        told("node-a", "xyz", RunState::kRunning)});
    if (all_up) {
      for (auto& node : status.nodes) node.state = schema::NodeState::kUp;
    }
    return status;
  }
  std::string selected(const std::string& run) { return picked(known(), run, Pick::kOnly); }
  std::string picked(const MeshStatus& mesh, const std::string& run, Pick pick) {
    const schema::ReplyBody body = select_run(mesh, {run, false, pick});
    if (const auto* error = std::get_if<Error>(&body)) return error->message;
    std::string ids;
    for (const RunStatus& status : std::get<MeshStatus>(body).runs) ids += status.id + " ";
    return ids;
  }
};

TEST_F(SelectRun, AllByDefault) { EXPECT_EQ(selected(""), "abc abcd xyz "); }
TEST_F(SelectRun, ExactBeforePrefix) { EXPECT_EQ(selected("abc"), "abc "); }
TEST_F(SelectRun, UniquePrefix) { EXPECT_EQ(selected("x"), "xyz "); }
TEST_F(SelectRun, UnknownRun) {
  EXPECT_EQ(selected("q"), "no run 'q' on any node; list them: tgctl list");
  EXPECT_EQ(std::get<Error>(select_run(known(), {"q"})).kind, ErrorKind::kNotFound);
}
TEST_F(SelectRun, UnknownRunAmongThoseThatAnswer) {
  EXPECT_EQ(std::get<Error>(select_run(known(false), {"q"})).message,
            "no run 'q' on any node that answers (not node-b, node-c); list them: tgctl list");
}
TEST_F(SelectRun, AmbiguousPrefix) {
  EXPECT_EQ(selected("ab"), "run 'ab' is not unique: 2 match: abc, abcd; give more of its id");
  EXPECT_EQ(std::get<Error>(select_run(known(), {"ab"})).kind, ErrorKind::kUsage);
}
TEST_F(SelectRun, APrefixSelectsByPurpose) {
  MeshStatus mesh = known();  // newest first
  for (RunStatus& run : mesh.runs) run.state = RunState::kCompleted;
  EXPECT_EQ(picked(mesh, "a", Pick::kNewest), "abc ");
  EXPECT_EQ(picked(mesh, "a", Pick::kNewestEnded), "abc ");
  EXPECT_EQ(picked(mesh, "", Pick::kNewest), "abc ");
  EXPECT_NE(picked(mesh, "a", Pick::kOnlyActive).find("not unique"), std::string::npos);
  mesh.runs[1].state = RunState::kRunning;
  EXPECT_EQ(picked(mesh, "a", Pick::kNewest), "abcd ") << "the one that goes on";
  EXPECT_EQ(picked(mesh, "a", Pick::kNewestEnded), "abc ");
  EXPECT_EQ(picked(mesh, "", Pick::kNewest), "abc ") << "the newest of all, whatever it does";
  EXPECT_NE(picked(mesh, "a", Pick::kOnly).find("not unique"), std::string::npos) << "though only one goes on";
  EXPECT_EQ(picked(mesh, "a", Pick::kOnlyActive), "abcd ");
  mesh.runs[0].state = RunState::kRunning;
  EXPECT_EQ(picked(mesh, "a", Pick::kNewest), "abc ") << "two go on";
  EXPECT_EQ(picked(mesh, "a", Pick::kOnlyActive), "run 'a' is not unique: 2 match: abc, abcd; give more of its id");
  EXPECT_EQ(picked(mesh, "a", Pick::kNewestEnded), "abc ") << "none has ended, and fetch will say so";
  EXPECT_EQ(picked(mesh, "x", Pick::kNewest), "xyz ");
  EXPECT_EQ(picked(mesh, "q", Pick::kNewest), "no run 'q' on any node; list them: tgctl list");
  mesh.runs.clear();
  EXPECT_EQ(picked(mesh, "", Pick::kNewest), "no run on any node; list them: tgctl list");
}
TEST_F(SelectRun, ManyMatchesAreCounted) {
  MeshStatus mesh = known();
  for (int i = 0; i < 7; ++i) mesh.runs.push_back(mesh.runs[2]), mesh.runs.back().id = "many-" + std::to_string(i);
  EXPECT_EQ(std::get<Error>(select_run(mesh, {"many"})).message,
            "run 'many' is not unique: 7 match: many-0, many-1, many-2, many-3, many-4 and 2 more; give more "
            "of its id");
}
TEST_F(SelectRun, APrefixForThePeersNeedsNoUniqueness) {
  EXPECT_EQ(select_prefix(known(), "ab").runs.size(), 2u);
  EXPECT_EQ(select_prefix(known(), "").runs.size(), 3u);
  EXPECT_EQ(select_prefix(known(), "q").runs.size(), 0u);
}

}  // namespace
}  // namespace tg::daemon

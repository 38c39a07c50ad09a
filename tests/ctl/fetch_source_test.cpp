#include "ctl/fetch/fetch_source.h"

#include <gtest/gtest.h>

namespace tg::ctl {
namespace {

using schema::MemberStatus;
using schema::RunState;
using schema::RunStatus;

RunStatus run_of(RunState state, std::vector<MemberStatus> members) {
  RunStatus run;
  run.id = "first";
  run.state = state;
  run.step = 10;
  run.reason = "node-c was lost";
  run.members = std::move(members);
  return run;
}

MemberStatus member(const char* node, RunState state, std::uint64_t step, std::uint64_t digest) {
  return {node, state, step, digest, step, 0};
}

constexpr RunState kCompleted = RunState::kCompleted;
constexpr RunState kLost = RunState::kFailed;

void expect_error(const RunStatus& run, bool partial, ErrorKind kind, const std::string& part) {
  const Result<FetchSource> source = choose_fetch_source(run, "b", partial);
  ASSERT_FALSE(source.ok()) << part;
  EXPECT_EQ(source.error().kind, kind);
  EXPECT_NE(source.error().message.find(part), std::string::npos) << "got: " << source.error().message;
}

TEST(FetchSource, AgreeingMembersNeedNoChoice) {
  for (const bool partial : {false, true}) {
    const auto source = choose_fetch_source(
        run_of(kCompleted, {member("a", kCompleted, 10, 5), member("b", kCompleted, 10, 5)}), "b", partial);
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ(source->nodes, (std::vector<std::string>{"b", "a"})) << "the asked one first";
    EXPECT_EQ(source->step, 10u);
    EXPECT_EQ(source->digest, 5u);
    EXPECT_TRUE(source->notes.empty());
  }
}

TEST(FetchSource, RunningRunsAreRefused) {
  for (const bool partial : {false, true}) {
    expect_error(run_of(RunState::kRunning, {member("a", RunState::kRunning, 10, 5)}), partial, ErrorKind::kRefused,
                 "is RUNNING at step 10");
  }
  expect_error(run_of(kCompleted, {member("a", kCompleted, 10, 5), member("b", RunState::kRunning, 10, 5)}), false,
               ErrorKind::kRefused, "b is still RUNNING");
  expect_error(run_of(kCompleted, {}), false, ErrorKind::kFailed, "no members");
}

TEST(FetchSource, ADifferingMemberIsNamed) {
  const RunStatus digest = run_of(
      kCompleted, {member("a", kCompleted, 10, 5), member("b", kCompleted, 10, 6), member("c", kCompleted, 10, 5)});
  expect_error(digest, false, ErrorKind::kFailed, "but b has 0000000000000006 at step 10");
  const RunStatus step = run_of(
      kCompleted, {member("a", kCompleted, 10, 5), member("b", kCompleted, 10, 5), member("c", kCompleted, 9, 5)});
  expect_error(step, false, ErrorKind::kFailed, "but c has");
  expect_error(step, true, ErrorKind::kFailed, "but c has");
}

TEST(FetchSource, AnInterruptedRunGivesItsNewestStateByChoice) {
  const RunState kGone = RunState::kInterrupted;
  const RunStatus run = run_of(kGone, {member("a", kGone, 6, 5), member("b", kGone, 9, 7), member("c", kGone, 0, 0)});
  expect_error(
      run, false, ErrorKind::kRefused,
      "run first is INTERRUPTED at step 10; --partial fetches its newest state, and tgctl resume first continues it");
  const auto source = choose_fetch_source(run, "a", true);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->nodes, std::vector<std::string>{"b"});
  EXPECT_EQ(source->step, 9u);
  expect_error(run_of(RunState::kPaused, {member("a", RunState::kPaused, 6, 5)}), true, ErrorKind::kRefused,
               "is PAUSED");
}

TEST(FetchSource, SilentMembersAreSkippedAndNamed) {
  const RunStatus run = run_of(kCompleted, {member("a", kCompleted, 0, 0), member("b", kCompleted, 10, 5)});
  const auto source = choose_fetch_source(run, "a", false);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->nodes, std::vector<std::string>{"b"});
  ASSERT_EQ(source->notes.size(), 1u);
  EXPECT_EQ(source->notes[0].find("a "), 0u) << source->notes[0];
  expect_error(run_of(kCompleted, {member("a", kCompleted, 0, 0)}), false, ErrorKind::kFailed, "no reachable member");
}

TEST(FetchSource, MembersWithoutASavedStateAreNoSource) {
  RunStatus run = run_of(kCompleted, {member("a", kCompleted, 10, 5), member("b", kCompleted, 10, 5)});
  run.members[0].save = schema::SaveState::kNotSaved;
  run.members[1].save = schema::SaveState::kInMemory;
  EXPECT_EQ(choose_fetch_source(run, "a", false)->nodes, std::vector<std::string>{"b"});
  run.members[1].save = schema::SaveState::kNothing;
  expect_error(run, false, ErrorKind::kFailed, "no reachable member");
}

TEST(FetchSource, FailedRunGivesItsFurthestMemberByChoice) {
  const RunStatus run = run_of(kLost, {member("a", kLost, 9, 5), member("b", kLost, 10, 6), member("c", kLost, 0, 0)});
  expect_error(run, false, ErrorKind::kRunFailed, "node-c was lost");
  const auto source = choose_fetch_source(run, "b", true);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->nodes, std::vector<std::string>{"b"});
  ASSERT_EQ(source->notes.size(), 3u);
  EXPECT_NE(source->notes[0].find("b has 0000000000000006 at step 10"), std::string::npos);
  EXPECT_NE(source->notes[1].find("a has"), std::string::npos);
  expect_error(run_of(kLost, {member("a", kLost, 0, 0)}), true, ErrorKind::kFailed, "no reachable member");
}

}  // namespace
}  // namespace tg::ctl

#include "ctl/wait_goal.h"

#include <gtest/gtest.h>

namespace tg::ctl {
namespace {

using schema::RunState;

WaitOutcome look(const char* goal, RunState state, std::uint64_t step = 0) {
  schema::RunStatus run;
  run.state = state;
  run.step = step;
  const Result<WaitGoal> parsed = WaitGoal::parse(goal);
  EXPECT_TRUE(parsed.ok()) << goal;
  return parsed->look(run);
}

TEST(WaitGoal, States) {
  EXPECT_EQ(look("running", RunState::kStarting), WaitOutcome::kWaiting);
  EXPECT_EQ(look("Running", RunState::kRunning), WaitOutcome::kReached);
  EXPECT_EQ(look("RUNNING", RunState::kCompleted), WaitOutcome::kImpossible);
  EXPECT_EQ(look("running", RunState::kFailed), WaitOutcome::kRunFailed);
  EXPECT_EQ(look("completed", RunState::kFailed), WaitOutcome::kRunFailed);
  EXPECT_EQ(look("failed", RunState::kFailed), WaitOutcome::kReached);
  EXPECT_EQ(look("failed", RunState::kRunning), WaitOutcome::kWaiting);
  EXPECT_EQ(look("failed", RunState::kCompleted), WaitOutcome::kImpossible);
}

TEST(WaitGoal, AnInterruptedRunEndsTheWaitAndAPausedOneDoesNot) {
  for (const char* goal : {"finished", "completed", "running", "step=10"}) {
    EXPECT_EQ(look(goal, RunState::kInterrupted, 9), WaitOutcome::kInterrupted) << goal;
    EXPECT_EQ(look(goal, RunState::kPaused, 9), WaitOutcome::kWaiting) << goal;
  }
  EXPECT_EQ(look("step=10", RunState::kInterrupted, 10), WaitOutcome::kReached);
  EXPECT_EQ(look("interrupted", RunState::kInterrupted), WaitOutcome::kReached);
  EXPECT_EQ(look("interrupted", RunState::kRunning), WaitOutcome::kWaiting);
  EXPECT_EQ(look("interrupted", RunState::kFailed), WaitOutcome::kRunFailed);
}

TEST(WaitGoal, TheEnd) {
  EXPECT_EQ(look("finished", RunState::kStopping), WaitOutcome::kWaiting);
  EXPECT_EQ(look("finished", RunState::kStopped), WaitOutcome::kReached);
  EXPECT_EQ(look("finished", RunState::kCompleted), WaitOutcome::kReached);
  EXPECT_EQ(look("finished", RunState::kFailed), WaitOutcome::kRunFailed);
}

TEST(WaitGoal, Steps) {
  EXPECT_EQ(look("step=10", RunState::kRunning, 9), WaitOutcome::kWaiting);
  EXPECT_EQ(look("step=10", RunState::kRunning, 10), WaitOutcome::kReached);
  EXPECT_EQ(look("step=10", RunState::kCompleted, 12), WaitOutcome::kReached);
  EXPECT_EQ(look("step=10", RunState::kStopped, 9), WaitOutcome::kImpossible);
  EXPECT_EQ(look("step=10", RunState::kFailed, 9), WaitOutcome::kRunFailed);
  EXPECT_EQ(look("step=10", RunState::kFailed, 10), WaitOutcome::kReached);
}

TEST(WaitGoal, OtherWordsAreUsageErrors) {
  for (const char* text : {"", "done", "step", "step=", "step=x", "step=-1", "step=1 "}) {
    const Result<WaitGoal> goal = WaitGoal::parse(text);
    ASSERT_FALSE(goal.ok()) << text;
    EXPECT_EQ(goal.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace tg::ctl

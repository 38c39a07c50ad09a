// The keys that a resume may change, and the runs that can be resumed.
#include "schema/options/resumed_job.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schema/options/options.h"

namespace tg::schema {
namespace {

RunStatus ended(RunState state, std::uint64_t step, std::uint64_t steps = 1000) {
  RunStatus run;
  run.id = "first";
  run.state = state;
  run.step = step;
  run.steps = steps;
  return run;
}

JobSpec of_steps(std::uint64_t steps) {
  JobSpec job;
  job.steps = steps;
  return job;
}

std::string refusal(const RunStatus& run, std::uint64_t steps, std::optional<std::uint64_t> from_step = std::nullopt) {
  const Status status = may_resume(run, of_steps(steps), from_step);
  return status.ok() ? "" : status.error().message;
}

TEST(ResumedJob, KeepsWhatIsNotSet) {
  JobSpec before;
  before.seed = 7;
  before.steps = 1000;
  before.schedule_every = 5;
  const Result<JobSpec> after = resumed_job(before, "steps = 2000\nlearning-rate=0.001\n");
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(after->steps, 2000u);
  EXPECT_EQ(after->learning_rate, 0.001);
  EXPECT_EQ(after->seed, 7u);
  EXPECT_EQ(after->schedule_every, 5u);
  EXPECT_EQ(resumed_job(before, "").value(), before);
}

TEST(ResumedJob, OnlyKeysThatKeepThePastCanBeSet) {
  EXPECT_EQ(resumable_keys(),
            "steps, epochs, learning-rate, evaluate-every, schedule, schedule-factor, "
            "schedule-every, schedule-power, schedule-floor, warm-up, target-accuracy, patience, trace, "
            "start-timeout, step-timeout, checkpoint-every, join-limit, auto-resume");
  std::size_t allowed = 0;
  for (const Option<JobSpec>& row : job_options()) {
    const std::string setting = row.name + "=" + row.get(JobSpec());
    EXPECT_EQ(resumed_job({}, setting).ok(), row.resumable) << setting;
    allowed += row.resumable;
  }
  EXPECT_EQ(allowed, 18u);
  const std::string message = "seed cannot change: what the run has trained so far came from it. A resume may set " +
                              resumable_keys() + "; for another seed start a new run";
  EXPECT_EQ(resumed_job({}, "steps = 5\nseed = 2").error().message, message);
  EXPECT_EQ(check_resumed_settings({"seed=2"}).error().message, message);
  EXPECT_EQ(check_resumed_settings({" seed = 2"}).error().message, message);
  EXPECT_TRUE(check_resumed_settings({"steps=2000", "trace = true"}).ok());
}

TEST(ResumedJob, MistakesAreReportedAsForAStart) {
  EXPECT_EQ(check_resumed_settings({"stepz=3"}).error().message,
            "unknown key \"stepz\"; did you mean \"steps\"? tgctl help job explains all keys");
  EXPECT_EQ(resumed_job({}, "steps = many").error().message,
            "steps: \"many\" is not a whole number from 1 to 4294967294");
  EXPECT_FALSE(resumed_job({}, "nonsense").ok());
}

TEST(ResumedJob, AStoppedRunCanResume) {
  for (const RunState state : {RunState::kInterrupted, RunState::kFailed, RunState::kStopped}) {
    EXPECT_EQ(refusal(ended(state, 600), 1000), "");
    EXPECT_EQ(refusal(ended(state, 1000), 1000), "") << "its report may be missing";
    EXPECT_EQ(refusal(ended(state, 600), 1000, 300), "");
    EXPECT_NE(refusal(ended(state, 600), 400), "");
  }
}

TEST(ResumedJob, ACompletedRunNeedsMoreSteps) {
  const RunStatus run = ended(RunState::kCompleted, 1000);
  EXPECT_EQ(refusal(run, 1000),
            "run first is COMPLETED at step 1000 of 1000; to train on, give it more steps: tgctl resume first --set "
            "steps=2000");
  EXPECT_EQ(refusal(run, 1001), "");
  EXPECT_EQ(refusal(run, 1000, 600), "") << "from an earlier state";
}

TEST(ResumedJob, EpochsAreStepsOfTheSetThatWasRead) {
  JobSpec job;
  EXPECT_EQ(resolved_steps(job, 100, 64).value(), 1000u) << "no epochs";
  job.epochs = 3;
  EXPECT_EQ(resolved_steps(job, 100, 64).value(), 5u) << "300 samples in batches of 64";
  EXPECT_EQ(resolved_steps(job, 1, 1000).value(), 1u);
  job.epochs = 1'000'000;
  EXPECT_EQ(resolved_steps(job, 1'000'000, 1).error().message,
            "epochs = 1000000 are 1000000000000 steps of this set; at most 4294967294");

  RunStatus run = ended(RunState::kCompleted, 5);
  run.training_samples = 100;
  run.global_batch = 64;
  job.epochs = 3;
  EXPECT_NE(may_resume(run, job, std::nullopt).error().message.find("COMPLETED at step 5 of 5"), std::string::npos);
  job.epochs = 4;
  EXPECT_TRUE(may_resume(run, job, std::nullopt).ok());
  EXPECT_EQ(resumed_job(job, "steps = 5").value().epochs, 0u) << "the last word";
  EXPECT_EQ(resumed_job(job, "seed = 1").ok(), false);
}

TEST(ResumedJob, AnActiveRunIsNotResumed) {
  EXPECT_EQ(refusal(ended(RunState::kRunning, 5), 1000),
            "run first is RUNNING; there is nothing to resume, and tgctl status first shows it");
  EXPECT_EQ(refusal(ended(RunState::kPending, 0), 1000),
            "run first is PENDING; there is nothing to resume, and tgctl status first shows it");
  RunStatus paused = ended(RunState::kPaused, 5);
  paused.reason = "resumes when node-a returns";
  EXPECT_EQ(refusal(paused, 1000),
            "run first is PAUSED: resumes when node-a returns; to wait no longer: tgctl stop first, then tgctl resume "
            "first, with --without NODE for each node that is away");
}

}  // namespace
}  // namespace tg::schema

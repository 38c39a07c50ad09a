#include "daemon/step/early_end.h"

#include <gtest/gtest.h>

namespace tg::daemon {
namespace {

// The evaluations of a run, in order, each 10 steps after the one before; where it ends and why, "" if it does not.
std::pair<std::uint64_t, std::string> end_of(const schema::JobSpec& job, const std::vector<double>& accuracies) {
  BestEvaluation best;
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    const std::uint64_t step = 10 * (i + 1);
    best.update(accuracies[i], step);
    if (std::string why = early_end_reason(job, best, accuracies[i], step); !why.empty()) return {step, std::move(why)};
  }
  return {0, ""};
}

schema::JobSpec job_of(double target, std::uint64_t patience) {
  schema::JobSpec job;
  job.evaluate_every = 10;
  job.target_accuracy = target;
  job.patience = patience;
  return job;
}

TEST(EarlyEnd, NotRequested) { EXPECT_EQ(end_of(job_of(0, 0), {0.5, 0.5, 0.5, 0.5}).second, ""); }

TEST(EarlyEnd, AtTheTarget) {
  const auto [step, why] = end_of(job_of(0.9, 0), {0.5, 0.8999, 0.9, 0.95});
  EXPECT_EQ(step, 30u);
  EXPECT_EQ(why, "the accuracy of 90.00 % has reached target-accuracy");
}

TEST(EarlyEnd, AfterAsManyEvaluationsWithoutABetterOne) {
  const auto [step, why] = end_of(job_of(0, 3), {0.5, 0.7, 0.7, 0.6, 0.65, 0.9});
  EXPECT_EQ(step, 50u);
  EXPECT_EQ(why, "no better accuracy than the 70.00 % of step 20 in 3 evaluations (patience)");
  EXPECT_EQ(end_of(job_of(0, 3), {0.5, 0.4, 0.4, 0.6, 0.5, 0.5, 0.7}).second, "");
  EXPECT_EQ(end_of(job_of(0, 1), {0, 0}).first, 10u) << "nothing was ever right";
}

TEST(EarlyEnd, AnEvaluationThatIsSaidAgainChangesNothing) {
  BestEvaluation best;
  best.update(0.5, 10);
  best.update(0.5, 10);
  best.update(0.5, 20);
  EXPECT_EQ(best.step, 10u);
}

}  // namespace
}  // namespace tg::daemon

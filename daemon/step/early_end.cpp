#include "daemon/step/early_end.h"

#include <cstdio>

namespace tg::daemon {
namespace {

std::string percent(double share) {
  char text[32];
  constexpr double kHundred = 100;
  std::snprintf(text, sizeof text, "%.2f %%", kHundred * share);
  return text;
}

}  // namespace

std::string early_end_reason(const schema::JobSpec& job, const BestEvaluation& best, double accuracy,
                             std::uint64_t step) {
  if (job.target_accuracy > 0 && accuracy >= job.target_accuracy)
    return "the accuracy of " + percent(accuracy) + " has reached target-accuracy";
  if (job.patience == 0 || step - best.step < job.patience * job.evaluate_every) return "";
  return "no better accuracy than the " + percent(best.accuracy) + " of step " + std::to_string(best.step) + " in " +
         std::to_string(job.patience) + (job.patience == 1 ? " evaluation" : " evaluations") + " (patience)";
}

}  // namespace tg::daemon

// Whether a run has come to its end before its last step, by what it has learned: the job's target-accuracy and
// patience. All members know the same evaluations, so each decides for itself once all reports are in. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "schema/options/job.h"

namespace tg::daemon {

struct BestEvaluation {
  double accuracy = 0;     // 0..1
  std::uint64_t step = 0;  // the first that had it; 0 = none yet
  // Idempotent.
  void update(double seen, std::uint64_t at) {
    if (seen > accuracy) *this = {seen, at};
  }
};

// Why the run ends with the evaluation of this step, for people; "" = it continues. best includes that evaluation.
std::string early_end_reason(const schema::JobSpec& job, const BestEvaluation& best, double accuracy,
                             std::uint64_t step);

}  // namespace tg::daemon

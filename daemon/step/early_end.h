// Whether a run has come to its end before its last step, by what it has learned: the job's target-accuracy and
// patience. All members know the same evaluations, so each decides for itself once a report of all is there. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "schema/options/job.h"

namespace tg::daemon {

struct BestEvaluation {
  double accuracy = 0;     // 0..1
  std::uint64_t step = 0;  // the first that had it; 0 = none yet
  // Said again, an evaluation changes nothing.
  void take(double of, std::uint64_t at) {
    if (of > accuracy) *this = {of, at};
  }
};

// Why it ends with the evaluation of this step, for people; "" = it goes on. best: with that evaluation.
std::string why_it_ends(const schema::JobSpec& job, const BestEvaluation& best, double accuracy, std::uint64_t step);

}  // namespace tg::daemon

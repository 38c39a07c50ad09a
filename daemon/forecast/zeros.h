// The share of zero codes that a prediction reckons with. Pure; any thread.
#pragma once

#include <string>

#include "schema/options/job.h"

namespace tg::daemon {

struct Zeros {
  double share = 0;
  std::string source;  // where the share is from, for a person
};

// Of a job's gradients: replayed gaussian ones have what the job asks for; else what training the model was measured to
// have at clip-sigma 2.5 (tests/lab/README.md, "Zeros of each network"). Of models that can only be replayed, what
// their trainable twins have.
Zeros zeros_of(const schema::JobSpec& job);

}  // namespace tg::daemon

// An update with every scalar set, whatever the rule uses of them: what the self-test and the tests compare variants
// on.
#pragma once

#include "kernels/types.h"

namespace tg::kernels {

inline Update sample_update(OptimizerKind kind, float weight_decay) {
  return {.kind = kind,
          .rate = 0.0371F,
          .scale = 0.00123F,
          .weight_decay = weight_decay,
          .momentum = 0.9F,
          .beta1 = 0.9F,
          .one_minus_beta1 = 0.1F,
          .beta2 = 0.999F,
          .one_minus_beta2 = 0.001F,
          .epsilon = 1e-8F,
          .decay_rate = 0.0293F};
}

}  // namespace tg::kernels

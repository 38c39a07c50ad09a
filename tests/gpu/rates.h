// Training rate through the interface that the daemon has: medians over steps of a member that is alone.
#pragma once

#include "engine/accelerator.h"
#include "kernels/base/choices.h"

namespace tg::gpu {

struct RateOptions {
  ModelKind model = ModelKind::kLenet;
  int batch = 64;
  double seconds = 2;  // of timed steps; ten at least
};

// One line of JSON on stdout. compute: forward and backward; step: with statistics, codes and the update, too.
void print_rates(engine::Accelerator& subject, const RateOptions& options);

}  // namespace tg::gpu

// What the codes of eight members cost a node that updates its parameters from them, over the plain update from floats.
#pragma once

#include "tests/bench/made_gradient.h"

namespace tg::kernels {

// Prints a row for each way, with its target.
void bench_receiving(const MadeGradient& gradient, int rounds);

}  // namespace tg::kernels

// Corrects predictions by steps that were measured (tests/lab/exchange --json): two coefficients, by least squares.
// Pure.
//
//   cpu_factor    on all processor seconds of the exchange
//   trip_seconds  a frame to a peer and its handling
//
// minimizes  sum over rows of (predicted step / measured - 1)^2 + (predicted processor time / measured - 1)^2. The step
// is linear in trip_seconds, which is therefore solved for each cpu_factor tried. Processor time tells the factor where
// the link is the bottleneck, and where a small step waits for its turn on a processor.
#pragma once

#include <vector>

#include "daemon/forecast/machine.h"
#include "kernels/base/status.h"
#include "schema/control/forecast.h"

namespace tg::daemon {

struct Calibration {
  double cpu_factor = 1;
  double trip_seconds = 0;
  double worst = 0;  // |predicted / measured - 1| of the step, the largest of the rows
};

// An error names the row whose model, exchange or coding is not known. rows is not empty.
Result<Calibration> calibrate(const Machine& machine, const std::vector<schema::MeasuredStep>& rows);

}  // namespace tg::daemon

// A machine and jobs with round numbers, for tests of predictions.
#pragma once

#include "daemon/forecast/predict.h"

namespace tg::daemon {

// 1 ns per element for each kernel as it is measured; LeNet at 1 ms, CifarNet at 2 ms per sample on
// one thread of as many cores as told; trips of 100 us.
Machine sample_machine(double cores = 1);
Task replay_task(ModelKind model, schema::GradientFormat last_layer = schema::GradientFormat::kTernary);
Task train_task(ModelKind model, std::uint64_t global_batch);

}  // namespace tg::daemon

// The checks, by the part of tests/gpu/run that they are; each adds its lines to the report.
#pragma once

#include "engine/accelerator.h"
#include "tests/gpu/kernel_timer.h"
#include "tests/gpu/report.h"

namespace tg::gpu {

struct CheckOptions {
  bool small = false;     // lengths, models and repeats that a processor does in seconds
  bool stand_in = false;  // what only a device has is left out
  engine::Math math = engine::Math::kFp32;
  int threads = 1;  // the CPU engine's
};

// Tensor kernels beside kernels/scalar, bit for bit.
void check_kernels(Report& report, engine::Accelerator& subject, const CheckOptions& options);
// The engine beside the CPU engine, on one-operator networks and on whole ones.
void check_networks(Report& report, engine::Accelerator& subject, const CheckOptions& options);
// What engine/engine.h promises beside the numbers.
void check_contract(Report& report, engine::Accelerator& subject, const CheckOptions& options);
// Kernels at 61 M floats beside the device's own copy. untraced: why the timer knows whole calls only.
void check_bandwidth(Report& report, engine::Accelerator& subject, KernelTimer& timer, const std::string& untraced);

}  // namespace tg::gpu

// Training rates through the interface that the daemon has: medians over steps of a member that is alone.
#pragma once

#include <vector>

#include "engine/accelerator.h"
#include "engine/choices.h"
#include "tests/gpu/kernel_timer.h"
#include "tests/gpu/subject.h"

namespace tg::gpu {

struct RateOptions {
  ModelKind model = ModelKind::kLenet;
  int batch = 64;
  double seconds = 1;               // for timed steps in each arithmetic; ten steps at least
  std::vector<engine::Math> maths;  // one after the other, each with an accelerator of its own
};

// One line of JSON on stdout for each arithmetic, in milliseconds:
//   compute_ms     forward, backward; meanwhile the next batch comes from page-locked memory of the host, as a node's
//   does update_ms      an update with momentum in two passes over the whole state, on the device alone: what an
//   optimizer's
//                  step is to a library that trains on one device
//   statistics_ms, codes_ms, apply_ms
//                  the tensor work of a node's step, in the calls that its workers make, one thread's one after the
//                  other: statistics, codes to the host, the update from them
//   step_ms        compute and that tensor work
// Or {"math": .., "refused": why} of an arithmetic that the subject does not have, and "failed" where it went wrong.
void print_rates(const SubjectOptions& subject, const RateOptions& options);

// Prints where the time of one such step goes: a line for each kernel and copy of the device (an empty name), as they
// began.
//   forward 12.3 4.5 NAME     began after 12.3 us, took 4.5 us
void print_trace(const SubjectOptions& subject, const RateOptions& options, KernelTimer& timer);

}  // namespace tg::gpu

// Optimizers and learning-rate schedules: turns a step number into the scalars of kernels::Update.
// Double arithmetic with + - * / sqrt only, so that every machine gets the same bits. Pure; any thread.
#pragma once

#include <cstdint>

#include "engine/choices.h"
#include "kernels/base/status.h"
#include "kernels/kernels.h"

namespace tg::engine {

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double base_rate = 0.01;
  // rate = (floor + (base_rate - floor) * f) * w. Warm-up leaves the schedule where it is: it multiplies the rate by
  //   w = (step + 1) / warm_up while step < warm_up, then by 1
  // f, over all steps, those of the warm-up among them:
  //   constant: 1; staircase: factor^(floor(step / every)); polynomial: (1 - step/steps)^power, power in {0.5, 1, 2};
  //   cosine: (1 + cos(pi * step/steps)) / 2, within 2^-51 of its value; polynomial and cosine: 0 from `steps` on
  double factor = 0.1;
  std::uint64_t every = 0;
  double power = 0.5;
  std::uint64_t steps = 0;
  double floor = 0;           // the rate that f = 0 stands for
  std::uint64_t warm_up = 0;  // steps
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kMomentum;
  Schedule schedule;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
};

// (1 + cos(pi * done / all)) / 2 for done <= all.
double half_cosine(std::uint64_t done, std::uint64_t all);
// The learning rate of step k (k = 0 is the first).
float learning_rate(const Schedule& schedule, std::uint64_t step);
// Sets everything except scale and weight_decay, which belong to the segment. adam adds epsilon to the root of what is
// not yet corrected, as TensorFlow does; adamw to the corrected root, as PyTorch does:
//   w -= rate * weight_decay * w;  w -= rate * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon), t = step + 1
kernels::Update update_for_step(const OptimizerOptions& options, std::uint64_t step);
using tg::slot_count;
// 1 - min(decay, (1+t)/(10+t)) with t = committed steps, so that the average forgets the initial parameters quickly.
// TensorFlow's moving average, which the paper's code evaluates, has the same rule.
float average_rate(double decay, std::uint64_t committed_steps);

}  // namespace tg::engine

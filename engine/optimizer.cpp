#include "engine/optimizer.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

// x^n by squaring: multiplications in a fixed order, where std::pow would depend on the libm.
double integer_power(double x, std::uint64_t n) {
  double result = 1.0;
  for (double square = x; n > 0; n >>= 1, square *= square) {
    if (n & 1) result *= square;
  }
  return result;
}

double schedule_factor(const Schedule& schedule, std::uint64_t step) {
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return 1.0;
    case ScheduleKind::kStaircase:
      TG_CHECK(schedule.every > 0);
      return integer_power(schedule.factor, step / schedule.every);
    case ScheduleKind::kPolynomial: {
      TG_CHECK(schedule.steps > 0);
      if (step >= schedule.steps) return 0.0;
      const double left = 1.0 - static_cast<double>(step) / static_cast<double>(schedule.steps);
      if (schedule.power == 0.5) return std::sqrt(left);  // IEEE: correctly rounded everywhere
      if (schedule.power == 1.0) return left;
      TG_CHECK(schedule.power == 2.0, schedule.power);
      return left * left;
    }
    case ScheduleKind::kCosine:
      TG_CHECK(schedule.steps > 0);
      return step >= schedule.steps ? 0.0 : half_cosine(step, schedule.steps);
  }
  TG_CHECK(false, static_cast<int>(schedule.kind));
}

double rate_of(const Schedule& schedule, std::uint64_t step) {
  const double rate = schedule.floor + (schedule.base_rate - schedule.floor) * schedule_factor(schedule, step);
  if (step >= schedule.warm_up) return rate;
  return rate * (static_cast<double>(step + 1) / static_cast<double>(schedule.warm_up));
}

}  // namespace

// (1 + cos(pi x)) / 2 for x = done / all, at most 1: the square of cos(pi x / 2), or of the sine of what is left, by
// whichever angle is at most pi/4. What their Taylor series leave out there is less than 2^-53 of their value.
double half_cosine(std::uint64_t done, std::uint64_t all) {
  const bool first_half = done <= all / 2;
  constexpr double kHalfPi = 1.57079632679489661923;
  const double angle = kHalfPi * (static_cast<double>(first_half ? done : all - done) / static_cast<double>(all));
  const double square = angle * angle;
  // Horner's rule: 1 - square/(1*2) * (1 - square/(3*4) * (1 - ...)); of the sine 1 - square/(2*3) * (...), times the
  // angle.
  double series = 1.0;
  for (int n = first_half ? 16 : 17; n > 1; n -= 2) series = 1.0 - series * square / (n * (n - 1));
  const double value = first_half ? series : series * angle;
  return value * value;
}

float learning_rate(const Schedule& schedule, std::uint64_t step) {
  return static_cast<float>(rate_of(schedule, step));
}

kernels::Update update_for_step(const OptimizerOptions& options, std::uint64_t step) {
  kernels::Update update;
  update.kind = options.kind;
  double rate = rate_of(options.schedule, step);
  switch (options.kind) {
    case OptimizerKind::kSgd:
      break;
    case OptimizerKind::kMomentum:
      update.momentum = static_cast<float>(options.momentum);
      break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW: {
      const std::uint64_t t = step + 1;
      const double root = std::sqrt(1.0 - integer_power(options.beta2, t));
      update.decay_rate = static_cast<float>(rate);
      rate *= root / (1.0 - integer_power(options.beta1, t));
      update.beta1 = static_cast<float>(options.beta1);
      update.one_minus_beta1 = static_cast<float>(1.0 - options.beta1);
      update.beta2 = static_cast<float>(options.beta2);
      update.one_minus_beta2 = static_cast<float>(1.0 - options.beta2);
      update.epsilon =
          static_cast<float>(options.kind == OptimizerKind::kAdamW ? options.epsilon * root : options.epsilon);
      break;
    }
  }
  update.rate = static_cast<float>(rate);
  return update;
}

float average_rate(double decay, std::uint64_t committed_steps) {
  const double t = static_cast<double>(committed_steps);
  return static_cast<float>(1.0 - std::min(decay, (1.0 + t) / (10.0 + t)));
}

}  // namespace tg::engine

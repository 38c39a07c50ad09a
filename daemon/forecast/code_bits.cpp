#include "daemon/forecast/code_bits.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

// Probability of every sum from -members to +members.
std::vector<double> distribution(double zeros, std::size_t members) {
  const double sign = (1 - zeros) / 2;
  std::vector<double> now{1};
  for (std::size_t n = 0; n < members; ++n) {
    std::vector<double> next(now.size() + 2, 0.0);
    for (std::size_t i = 0; i < now.size(); ++i) {
      next[i] += now[i] * sign;
      next[i + 1] += now[i] * zeros;
      next[i + 2] += now[i] * sign;
    }
    now = std::move(next);
  }
  return now;
}

double entropy(const std::vector<double>& probabilities) {
  double bits = 0;
  for (const double p : probabilities)
    if (p > 0) bits -= p * std::log2(p);
  return bits;
}

// The mask, a sign for each nonzero, and one bit per element for every level that it reaches below the last.
double unary_bits(const std::vector<double>& probabilities, std::size_t members) {
  double bits = 1;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const std::size_t magnitude = i > members ? i - members : members - i;
    if (magnitude > 0) bits += probabilities[i] * (1 + static_cast<double>(std::min(magnitude, members - 1)));
  }
  return bits;
}

struct Measured {
  ModelKind model;
  int percent;
  const char* on;  // the data
};
constexpr Measured kMeasured[] = {
    {ModelKind::kLenet, 91, "MNIST"},
    {ModelKind::kCifarnet, 81, "CIFAR-10"},
    {ModelKind::kMlp, 90, "MNIST"},
    {ModelKind::kAlexnet, 86, "fractals"},
    {ModelKind::kAlexnetTwoColumn, 86, "fractals"},
    {ModelKind::kGooglenet, 82, "fractals"},
    {ModelKind::kGooglenetSlim, 78, "fractals"},
    {ModelKind::kVggA, 89, "fractals"},
    {ModelKind::kResnet18, 75, "fractals"},
    {ModelKind::kResnet20, 80, "fractals"},
    {ModelKind::kResnet50, 78, "fractals"},
};

}  // namespace

CodeBits expected_bits(schema::Coding coding, double zeros, std::size_t members) {
  zeros = std::clamp(zeros, 0.0, 1.0);
  const std::vector<double> codes = distribution(zeros, 1), sums = distribution(zeros, members);
  if (coding == schema::Coding::kEntropy) return {entropy(codes) * kCodingLoss, entropy(sums) * kCodingLoss};
  return {2 - zeros, unary_bits(sums, members)};
}

Zeros zeros_of(const schema::JobSpec& job) {
  if (job.compute == schema::Compute::kReplay && !job.replay_gradients)
    return {job.replay_zeros, "the job's replay-zeros"};
  const auto* const found = std::ranges::find(kMeasured, job.model, &Measured::model);
  TG_CHECK(found != std::end(kMeasured), static_cast<int>(job.model));
  return {found->percent / 100.0,
          std::to_string(found->percent) + " % of all codes, as measured on " + found->on + " at clip-sigma 2.5"};
}

}  // namespace tg::daemon

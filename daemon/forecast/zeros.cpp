#include "daemon/forecast/zeros.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

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

Zeros zeros_of(const schema::JobSpec& job) {
  if (job.compute == schema::Compute::kReplay && !job.replay_gradients)
    return {job.replay_zeros, "the job's replay-zeros"};
  const auto* const found = std::ranges::find(kMeasured, job.model, &Measured::model);
  TG_CHECK(found != std::end(kMeasured), static_cast<int>(job.model));
  return {found->percent / 100.0, std::to_string(found->percent) + " % of all codes, as " + to_word(found->model) +
                                      " had on " + found->on + " at clip-sigma 2.5"};
}

}  // namespace tg::daemon

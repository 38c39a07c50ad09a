#include "daemon/forecast/machine.h"

#include <algorithm>
#include <cmath>

namespace tg::daemon {

double planes(std::size_t members, double zeros) {
  const double count = static_cast<double>(members);
  return std::clamp(kReach * std::sqrt(count * (1 - zeros)), 1.0, std::max(count, 1.0));
}

KernelCosts costs_at(const KernelCosts& measured, std::size_t members, double zeros) {
  const double ratio = planes(members, zeros) / planes(kMeasuredMembers, kMeasuredZeros);
  KernelCosts costs = measured;
  for (double& coded : costs.sums) coded *= ratio;
  return costs;
}

std::vector<schema::KernelRate> rates_of(KernelCosts costs) {
  std::vector<schema::KernelRate> rates;
  for (const KernelCost& kernel : kKernelCosts) rates.push_back({kernel.name, 1e-9 / *kernel.field(costs)});
  return rates;
}

Result<Machine> machine_of(const schema::BenchReply& bench) {
  Machine machine;
  for (const KernelCost& kernel : kKernelCosts) {
    const auto rate = std::find_if(bench.codec.begin(), bench.codec.end(),
                                   [&](const schema::KernelRate& one) { return one.kernel == kernel.name; });
    if (rate == bench.codec.end() || rate->rate <= 0)
      return Error{ErrorKind::kCorrupt, std::string("the measurement has no speed of ") + kernel.name};
    *kernel.field(machine.kernels) = 1e-9 / rate->rate;
  }
  machine.compute = bench.compute;
  machine.on_device = !bench.device.empty();
  machine.cores = static_cast<double>(std::max<std::uint64_t>(bench.cores, 1));
  machine.threads = static_cast<double>(std::max<std::uint64_t>(bench.threads, 1));
  if (bench.round_trip_seconds > 0) machine.trip_seconds = bench.round_trip_seconds / 2;
  return machine;
}

}  // namespace tg::daemon

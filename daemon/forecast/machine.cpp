#include "daemon/forecast/machine.h"

#include <algorithm>
#include <cmath>

#include "daemon/membership/choose_exchange.h"
#include "daemon/step/worker.h"

namespace tg::daemon {
namespace {

// The neighbours of a value among measured ones, and how far it is from the first to the second.
struct Between {
  double low = 0, high = 0, share = 0;
};

Between between(std::vector<double> measured, double value) {
  std::sort(measured.begin(), measured.end());
  const auto above = std::lower_bound(measured.begin(), measured.end(), value);
  if (above == measured.begin()) return {measured.front(), measured.front(), 0};
  if (above == measured.end()) return {measured.back(), measured.back(), 0};
  const double low = *(above - 1), high = *above;
  return {low, high, (value - low) / (high - low)};
}

double log_of(std::size_t count) { return std::log2(static_cast<double>(count)); }

// How far a model of so many parameters is from arrays of `small` to arrays of `large` elements.
double largeness(std::size_t parameters, std::size_t small, std::size_t large) {
  const double at = log_of(std::max<std::size_t>(parameters, 1)), low = log_of(small);
  return std::clamp((at - low) / (log_of(large) - low), 0.0, 1.0);
}

CodecCosts mix(CodecCosts a, CodecCosts b, double share) {
  for (const KernelCost& kernel : kKernelCosts) *kernel.field(a) += share * (*kernel.field(b) - *kernel.field(a));
  return a;
}

}  // namespace

CodecCosts costs_at(const Machine& machine, double zeros, std::size_t members, std::size_t parameters) {
  TG_CHECK(!machine.codec.empty());
  std::vector<double> zeros_measured, members_measured;
  for (const CodecPoint& point : machine.codec) {
    zeros_measured.push_back(point.zeros);
    members_measured.push_back(log_of(point.members));
  }
  const Between z = between(zeros_measured, zeros), m = between(members_measured, log_of(members));
  const auto at = [&](double want_zeros, double want_members) {
    const auto found = std::find_if(machine.codec.begin(), machine.codec.end(), [&](const CodecPoint& point) {
      return point.zeros == want_zeros && log_of(point.members) == want_members;
    });
    return found == machine.codec.end() ? machine.codec.front().costs : found->costs;
  };
  CodecCosts costs = mix(mix(at(z.low, m.low), at(z.high, m.low), z.share),
                         mix(at(z.low, m.high), at(z.high, m.high), z.share), m.share);
  std::size_t below = machine.codec.front().elements;
  for (const CodecPoint& large : machine.large) {
    const double share = largeness(parameters, below, large.elements);
    costs.statistics += share * (large.costs.statistics - costs.statistics);
    costs.ternarize += share * (large.costs.ternarize - costs.ternarize);
    costs.apply += share * (large.costs.apply - costs.apply);
    below = large.elements;
  }
  return costs;
}

std::size_t parameters_in_caches(const Machine& machine, double cores, std::size_t parameters) {
  return static_cast<std::size_t>(static_cast<double>(parameters) * std::max(machine.cores / cores, 1.0));
}

double crew_speed_up(const Machine& machine, double cores) {
  const double workers = std::floor(std::min(cores, static_cast<double>(kMostWorkers)));
  if (workers <= 1) return 1;
  const double each = machine.workers > 1 ? (machine.crew_speed_up - 1) / (machine.workers - 1) : 1;
  return 1 + each * (workers - 1);
}

std::vector<schema::KernelRate> rates_of(const CodecPoint& point) {
  std::vector<schema::KernelRate> rates;
  CodecCosts costs = point.costs;
  for (const KernelCost& kernel : kKernelCosts)
    rates.push_back({kernel.name, point.zeros, point.members, point.elements, 1e-9 / *kernel.field(costs)});
  return rates;
}

std::vector<CodecPoint> points_of(const std::vector<schema::KernelRate>& rates) {
  std::vector<CodecPoint> points;
  for (const schema::KernelRate& rate : rates) {
    auto point = std::find_if(points.begin(), points.end(), [&](const CodecPoint& one) {
      return one.zeros == rate.zeros && one.members == rate.members && one.elements == rate.elements;
    });
    if (point == points.end())
      point = points.insert(
          points.end(),
          {rate.zeros, static_cast<std::size_t>(rate.members), static_cast<std::size_t>(rate.elements), {}});
    for (const KernelCost& kernel : kKernelCosts)
      if (rate.kernel == kernel.name && rate.rate > 0) *kernel.field(point->costs) = 1e-9 / rate.rate;
  }
  return points;
}

Result<Machine> machine_of(const schema::BenchReply& bench) {
  Machine machine;
  machine.codec = points_of(bench.codec);
  if (machine.codec.empty()) return Error{ErrorKind::kCorrupt, "the measurement has no kernels"};
  for (CodecPoint& point : machine.codec)
    for (const KernelCost& kernel : kKernelCosts)
      if (*kernel.field(point.costs) <= 0)
        return Error{ErrorKind::kCorrupt, std::string("the measurement has no speed of ") + kernel.name};
  const auto smaller = [](const CodecPoint& a, const CodecPoint& b) { return a.elements < b.elements; };
  const std::size_t least = std::min_element(machine.codec.begin(), machine.codec.end(), smaller)->elements;
  if (least == 0) return Error{ErrorKind::kCorrupt, "the measurement does not say with how many elements"};
  const auto large = std::stable_partition(machine.codec.begin(), machine.codec.end(),
                                           [least](const CodecPoint& point) { return point.elements == least; });
  machine.large.assign(large, machine.codec.end());
  std::sort(machine.large.begin(), machine.large.end(), smaller);
  machine.codec.erase(large, machine.codec.end());
  machine.compute = bench.compute;
  machine.cores = static_cast<double>(std::max<std::uint64_t>(bench.cores, 1));
  machine.threads = static_cast<double>(std::max<std::uint64_t>(bench.threads, 1));
  machine.workers = static_cast<double>(std::max<std::uint64_t>(bench.workers, 1));
  machine.crew_speed_up = std::max(bench.crew_speed_up, 1.0);
  machine.trip_seconds = bench.round_trip_seconds > 0 ? bench.round_trip_seconds / 2 : kTripSeconds;
  return machine;
}

}  // namespace tg::daemon

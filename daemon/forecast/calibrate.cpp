#include "daemon/forecast/calibrate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "daemon/forecast/predict.h"
#include "kernels/base/check.h"

namespace tg::daemon {
namespace {

using schema::Coding;
using schema::ExchangeKind;
using schema::MeasuredStep;

constexpr double kLeastFactor = 0.1, kMostFactor = 20;
constexpr int kGrid = 200;        // factors tried first, 2.7 % apart
constexpr int kRefinements = 40;  // golden sections around the best
constexpr double kMostTripSeconds = 0.1;

struct Row {
  StepModel step;
  MeasuredStep measured;
};

Result<Row> row_of(const Machine& machine, const MeasuredStep& measured, std::size_t number) {
  const std::string place = "measured step " + std::to_string(number) + ": ";
  schema::JobSpec job;
  job.compute = "replay";
  job.model = measured.model;
  Result<Task> task = make_task(job);
  if (!task) return Error{ErrorKind::kUsage, place + task.error().message};
  if (measured.exchange != "direct" && measured.exchange != "sharded")
    return Error{ErrorKind::kUsage, place + "no exchange is called \"" + measured.exchange + "\""};
  const ExchangeKind exchange = measured.exchange == "direct" ? ExchangeKind::kDirect : ExchangeKind::kSharded;
  if (measured.coding != "raw" && measured.coding != "entropy")
    return Error{ErrorKind::kUsage, place + "no coding is called \"" + measured.coding + "\""};
  const Coding coding = measured.coding == "raw" ? Coding::kRaw : Coding::kEntropy;
  const Surroundings where{measured.line_mbps * kPayloadShare, measured.cores, measured.zeros};
  return Row{model_of(*task, machine, where, measured.nodes, {exchange, coding}), measured};
}

// The trip that fits best with this factor.
double best_trip(const std::vector<Row>& rows, double factor) {
  double above = 0, below = 0;
  for (const Row& row : rows) {
    const double weight = row.step.trips / row.step.share() / row.measured.step_seconds;
    above += weight * (1 - row.step.step_seconds(factor, 0) / row.measured.step_seconds);
    below += weight * weight;
  }
  return below > 0 ? std::clamp(above / below, 0.0, kMostTripSeconds) : 0;
}

double residual(const std::vector<Row>& rows, double factor) {
  const double trip = best_trip(rows, factor);
  double sum = 0;
  for (const Row& row : rows) {
    const double step = row.step.step_seconds(factor, trip) / row.measured.step_seconds - 1;
    sum += step * step;
    if (row.measured.cpu_seconds <= 0) continue;
    const double cpu = row.step.processor_seconds(factor) / row.measured.cpu_seconds - 1;
    sum += cpu * cpu;
  }
  return sum;
}

double best_factor(const std::vector<Row>& rows) {
  const double ratio = std::pow(kMostFactor / kLeastFactor, 1.0 / kGrid);
  double best = 1, least = residual(rows, 1);
  for (int i = 0; i <= kGrid; ++i) {
    const double factor = kLeastFactor * std::pow(ratio, i);
    const double one = residual(rows, factor);
    if (one < least) {
      least = one;
      best = factor;
    }
  }
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = best / ratio, high = best * ratio;
  for (int i = 0; i < kRefinements; ++i) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    if (residual(rows, left) < residual(rows, right))
      high = right;
    else
      low = left;
  }
  return (low + high) / 2;
}

}  // namespace

Result<Calibration> calibrate(const Machine& machine, const std::vector<MeasuredStep>& measured) {
  TG_CHECK(!measured.empty());
  std::vector<Row> rows;
  for (const MeasuredStep& one : measured) {
    Result<Row> row = row_of(machine, one, rows.size() + 1);
    if (!row) return row.error();
    rows.push_back(std::move(row).value());
  }
  Calibration calibration;
  calibration.cpu_factor = best_factor(rows);
  calibration.trip_seconds = best_trip(rows, calibration.cpu_factor);
  for (const Row& row : rows) {
    const double step = row.step.step_seconds(calibration.cpu_factor, calibration.trip_seconds);
    calibration.worst = std::max(calibration.worst, std::abs(step / row.measured.step_seconds - 1));
  }
  return calibration;
}

}  // namespace tg::daemon

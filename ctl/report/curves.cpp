#include "ctl/report/curves.h"

#include <algorithm>
#include <string_view>

namespace tg::ctl {
namespace {

struct Drawn {
  std::string_view name;
  Series Curves::*series;
};
constexpr Drawn kDrawn[] = {{"loss", &Curves::loss},
                            {"learning_rate", &Curves::learning_rate},
                            {"zeros", &Curves::zeros},
                            {"sent_bits_per_parameter", &Curves::sent_bits},
                            {"code_bits_per_parameter", &Curves::code_bits},
                            {"samples_per_second", &Curves::samples_per_second},
                            {"accuracy", &Curves::accuracy},
                            {"evaluation_loss", &Curves::evaluation_loss}};
constexpr std::string_view kWaits = "wait_seconds/", kLayers = "layer_zeros/";
constexpr std::size_t kMaxLayers = 1000;

void add_zeros(const std::string& layer, std::uint64_t step, double zeros, Curves& curves) {
  auto at = std::ranges::find(curves.layers, layer, &Curves::Layer::name);
  if (at == curves.layers.end()) {
    if (curves.layers.size() == kMaxLayers) return;
    at = curves.layers.insert(at, {layer, {}});
  }
  at->zeros.add(step, zeros);
}

}  // namespace

void add_line(const MetricLine& line, Curves& curves) {
  ++curves.steps;
  for (const Metric& metric : line.metrics) {
    if (!metric.number) continue;
    for (const Drawn& drawn : kDrawn)
      if (metric.name == drawn.name) (curves.*drawn.series).add(line.step, *metric.number);
    if (metric.name == "seconds") curves.seconds += *metric.number;
    if (metric.name == "data_wait_seconds") curves.data_wait += *metric.number;
    if (metric.name.starts_with(kWaits)) curves.waits[metric.name.substr(kWaits.size())] += *metric.number;
    if (metric.name.starts_with(kLayers))
      add_zeros(metric.name.substr(kLayers.size()), line.step, *metric.number, curves);
  }
}

Result<Curves> read_curves(const MetricsFile& file) {
  Curves curves;
  const Status read = for_each_line(file, [&](const MetricLine& line) -> Status {
    add_line(line, curves);
    return {};
  });
  if (!read) return read.error();
  return curves;
}

}  // namespace tg::ctl

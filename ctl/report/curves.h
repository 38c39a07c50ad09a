// A run's curves and sums, from one member's metrics.jsonl. Main thread only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ctl/export/metric_lines.h"
#include "ctl/report/series.h"

namespace tg::ctl {

struct Curves {
  Series loss, learning_rate, zeros, sent_bits, code_bits, samples_per_second;
  Series accuracy, evaluation_loss;
  struct Layer {
    std::string name;  // a parameter tensor's name
    Series zeros;
  };
  std::vector<Layer> layers;  // in the network's order
  // Seconds over all steps: in all, waiting for data, and waiting for each other member.
  double seconds = 0, data_wait = 0;
  std::map<std::string, double> waits;
  std::uint64_t steps = 0;  // lines
};

void add_line(const MetricLine& line, Curves& curves);
Result<Curves> read_curves(const MetricsFile& file);

}  // namespace tg::ctl

// A node's numbers in Prometheus' text format 0.0.4, as prometheus-cpp writes it. Pure.
#pragma once

#include <functional>
#include <string>

#include "daemon/metrics/numbers.h"
#include "daemon/metrics/process_numbers.h"

namespace tg::daemon {

// The node that answers; does not change during the process.
struct AboutNode {
  Per<Seat, std::string> names;  // of all nodes
  Seat self;
  std::string build, kernels;
  std::function<schema::ComputeStatus()> compute = {};  // what trains; asked again each time
};

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const AboutNode& about, const Numbers& numbers, const ProcessNumbers& process);

}  // namespace tg::daemon

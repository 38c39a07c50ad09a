// Writes a node's numbers in Prometheus' text format 0.0.4, by prometheus-cpp. Pure.
#pragma once

#include <functional>
#include <string>

#include "daemon/metrics/numbers.h"
#include "daemon/metrics/process_numbers.h"
#include "schema/options/node_list.h"

namespace tg::daemon {

// The node that the metrics belong to; constant for the life of the process.
struct NodeInfo {
  schema::NodeList names;  // all nodes' names
  Seat self;
  std::string build, kernels;
  std::function<schema::ComputeStatus()> compute = {};  // the device that trains; called for each request
};

inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

std::string metrics_text(const NodeInfo& about, const Numbers& numbers, const ProcessNumbers& process);

}  // namespace tg::daemon

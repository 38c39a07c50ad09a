// Reads metrics.jsonl of a run (deploy/tgctl.md) line by line, for export and report. The file is not trusted: a line
// that is not valid is an error (kCorrupt) that names it. Main thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::ctl {

inline constexpr std::size_t kWriteBytes = 1 << 20;  // bytes per write

struct MetricsFile {
  std::string path;
  std::string name;  // for people
};

struct Metric {
  std::string name;  // "loss"; for a key inside an object, "wait_seconds/node-b"
  std::string text;  // as in the file, without quotes; "" for null
  std::optional<double> number;
};

struct MetricLine {
  std::uint64_t step = 0;
  std::int64_t time_ms = 0;     // since 1970; 0 if the line has none, because an older tgd wrote it
  std::vector<Metric> metrics;  // all of the line's, including step and time
};

// No value if the text is not a line of metrics.jsonl.
std::optional<MetricLine> parse_metric_line(std::string_view text);

Status for_each_line(const MetricsFile& file, const std::function<Status(const MetricLine&)>& take);

}  // namespace tg::ctl

// metrics.jsonl as a table (RFC 4180, but lines end with \n): a column for each metric that any line has, in the order
// of their first lines, and nothing where a line lacks it. Main thread only.
#pragma once

#include "ctl/export/metric_lines.h"
#include "ctl/fetch/part_file.h"

namespace tg::ctl {

Status write_csv(const MetricsFile& from, PartFile& to);

}  // namespace tg::ctl

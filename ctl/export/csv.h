// Writes metrics.jsonl as a table (RFC 4180, but lines end with \n): a column for each metric in any line, in the order
// of first occurrence, with empty cells for lines without it. Main thread only.
#pragma once

#include "ctl/export/metric_lines.h"
#include "ctl/fetch/part_file.h"

namespace tg::ctl {

Status write_csv(const MetricsFile& from, PartFile& to);

}  // namespace tg::ctl

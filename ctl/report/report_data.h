// Reads a run's files for its page. Pure.
#pragma once

#include <string>

#include "ctl/report/page.h"
#include "kernels/base/status.h"

namespace tg::ctl {

// Parses the texts of run.json and views.jsonl; the result has no curves. Never throws; an error (kCorrupt) completes
// "run.json is damaged: ". An incomplete line of the views is left out.
Result<ReportData> report_data(const std::string& record, const std::string& views);

}  // namespace tg::ctl

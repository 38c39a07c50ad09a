// What a run's files say of it, for its page. Pure.
#pragma once

#include <string>

#include "ctl/report/page.h"
#include "kernels/base/status.h"

namespace tg::ctl {

// From the texts of run.json and views.jsonl; without curves. Never throws; an error (kCorrupt) completes "run.json is
// damaged: ". A line of the views that is torn is left out.
Result<ReportData> report_data(const std::string& record, const std::string& views);

}  // namespace tg::ctl

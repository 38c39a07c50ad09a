// The report page of a run: one HTML file without scripts or other files. Its Content-Security-Policy allows only its
// own style sheet, and all text from others is escaped. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ctl/report/curves.h"
#include "schema/control/status.h"
#include "schema/described/json_form.h"

namespace tg::ctl {

struct ReportData {
  schema::RunStatus run;
  schema::OrderedJson record;              // run.json of one member
  std::string node;                        // that member
  Curves curves;                           // from its metrics
  std::vector<schema::OrderedJson> views;  // lines of views.jsonl
  std::string misclassifications;          // markup (misclassifications.h); "" = not requested
  std::int64_t made_ms = 0;                // Unix time
  std::uint64_t refresh_seconds = 0;       // the browser loads it again after this time; 0 = never
};

std::string report_page(const ReportData& data);

}  // namespace tg::ctl

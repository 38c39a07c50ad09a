// The page that shows a run: one HTML file without any script, complete in itself. Its Content-Security-Policy allows
// its own style sheet and nothing else; whatever others say is escaped. Pure.
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
  schema::OrderedJson record;              // run.json of the member that the rest is from
  std::string node;                        // that one
  Curves curves;                           // of its metrics
  std::vector<schema::OrderedJson> views;  // lines of views.jsonl
  std::string mistakes;                    // markup (mistakes.h); "" = not asked for
  std::int64_t made_ms = 0;                // Unix time
  std::uint64_t again_seconds = 0;         // the browser loads it again after so long; 0 = never
};

std::string report_page(const ReportData& data);

}  // namespace tg::ctl

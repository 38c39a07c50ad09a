// What differs between runs: their jobs' keys, and what came of them. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ctl/format/table.h"
#include "schema/control/status.h"

namespace tg::ctl {

// The keys that are not the defaults.
std::map<std::string, std::string> settings_of(const schema::RunStatus& run);

// For each run its keys whose values are not the same in all of them: "learning-rate=0.1 seed=3".
std::vector<std::string> differing_settings(const std::vector<schema::RunStatus>& runs);

// The runs' names, then a row for each key and each result that differs; a column for each run.
Rows comparison_rows(const std::vector<schema::RunStatus>& runs);
std::string format_comparison(const std::vector<schema::RunStatus>& runs, std::size_t columns);

}  // namespace tg::ctl

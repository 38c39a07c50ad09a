// The differences between runs: their jobs' keys, and their results. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ctl/format/table.h"
#include "schema/control/status.h"

namespace tg::ctl {

// A job's keys that differ from the defaults.
std::map<std::string, std::string> settings_of(const schema::RunStatus& run);

// For each run the values of the keys in which the runs differ: "learning-rate=0.1 seed=3".
std::vector<std::string> differing_settings(const std::vector<schema::RunStatus>& runs);

// A row with the runs' names, then one for each key and each result that differs; a column for each run.
Rows comparison_rows(const std::vector<schema::RunStatus>& runs);
std::string format_comparison(const std::vector<schema::RunStatus>& runs, std::size_t columns);

}  // namespace tg::ctl

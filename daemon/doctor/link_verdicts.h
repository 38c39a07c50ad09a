// Verdicts on nodes as others see them, and on the links between them. Pure; any thread.
#pragma once

#include <vector>

#include "daemon/doctor/findings.h"
#include "daemon/doctor/survey.h"

namespace tg::daemon {

// From each node to each node, row by row.
std::vector<schema::Cell> matrix_of(const Survey& survey);

void judge_nodes(const Survey& survey, Findings& findings);
void judge_names(const Survey& survey, Findings& findings);
void judge_ports(const Survey& survey, Findings& findings);
void judge_keys(const Survey& survey, Findings& findings);
void judge_round_trips(const Survey& survey, Findings& findings);
void judge_mtu(const Survey& survey, Findings& findings);
void judge_bandwidth(const Survey& survey, Findings& findings);

}  // namespace tg::daemon

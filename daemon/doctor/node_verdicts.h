// Verdicts on what nodes say of themselves, each alone and all beside each other. Pure; any thread.
#pragma once

#include "daemon/doctor/findings.h"
#include "daemon/doctor/survey.h"

namespace tg::daemon {

void judge_configuration(const Survey& survey, Findings& findings);
void judge_versions(const Survey& survey, Findings& findings);
void judge_clocks(const Survey& survey, Findings& findings);
void judge_data(const Survey& survey, Findings& findings);
void judge_hosts(const Survey& survey, Findings& findings);  // disk, memory, descriptors, engine

}  // namespace tg::daemon

// Draws conclusions from the examinations of all nodes: findings, each with its next step (problems.h), and which node
// reaches which. Pure; any thread.
#pragma once

#include "daemon/doctor/survey.h"

namespace tg::daemon {

schema::Diagnosis diagnose(const Survey& survey);

}  // namespace tg::daemon

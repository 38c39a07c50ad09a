// Draws conclusions from what all nodes found out about themselves and their links: findings, each with its fix, and
// which node reaches which. Pure; any thread.
#pragma once

#include "daemon/doctor/survey.h"

namespace tg::daemon {

schema::Diagnosis diagnose(const Survey& survey);

}  // namespace tg::daemon

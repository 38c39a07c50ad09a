// What the status of a run says of its job. Pure; any thread.
#pragma once

#include "schema/control/status.h"
#include "schema/options/job.h"

namespace tg::schema {

void show_job(const JobSpec& job, RunStatus& status);

}  // namespace tg::schema

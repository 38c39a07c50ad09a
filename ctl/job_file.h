// Reads the job that a command line names: a file, the name of an installed job, or - for stdin. Applies --set, and
// validates the job as far as a single machine can. Main thread only.
#pragma once

#include "ctl/command_line/command_line.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::ctl {

Result<schema::JobSpec> read_job(const Command& command);

}  // namespace tg::ctl

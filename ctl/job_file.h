// The job that a command line names: its file, an installed one's name, or - for stdin, with the --set values on top,
// validated as far as a single machine can. Main thread only.
#pragma once

#include "ctl/command_line/command_line.h"
#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::ctl {

Result<schema::JobSpec> read_job(const Command& command);

}  // namespace tg::ctl

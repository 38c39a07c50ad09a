// The job of a resumed run: that of its record, with what tgctl resume --set may change; and whether a run can be
// resumed at all. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "schema/control/status.h"
#include "schema/options/job.h"

namespace tg::schema {

// "steps, learning-rate, ...", in the order of the reference.
std::string resumable_keys();

// Checks the keys alone, as far as that goes without the run's own job.
Status check_resumed_settings(const std::vector<std::string>& assignments);
// settings: job lines, as in ResumeRequest.
Result<JobSpec> resumed_job(const JobSpec& before, std::string_view settings);

// job: as it would go on; from_step: where, nothing = the newest state. An error says what to do instead.
Status may_resume(const RunStatus& run, const JobSpec& job, std::optional<std::uint64_t> from_step);

}  // namespace tg::schema

// The keys of a job that are about its data: which set, and how a sample becomes input. Used in this folder only. Pure.
#pragma once

#include <vector>

#include "kernels/base/status.h"
#include "schema/options/job.h"

namespace tg::schema {

void add_data_keys(std::vector<Option<JobSpec>>& rows);
// Refuses keys that contradict each other.
Status validate_data_keys(const JobSpec& spec);

}  // namespace tg::schema

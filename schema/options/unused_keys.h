// Finds keys that a job sets to no effect: what they are for is not in the job. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/options/job.h"

namespace tg::schema {

// A sentence per key, with its place. file: what the job was read from; text: its content.
std::vector<std::string> unused_keys(const JobSpec& job, std::string_view text, std::string_view file);

}  // namespace tg::schema

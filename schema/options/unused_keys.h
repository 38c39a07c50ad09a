// Keys that a job sets and nothing in it uses, or that leave nothing of what they are for: whoever wrote them expects
// something. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/options/job.h"

namespace tg::schema {

// A sentence for each, with its place. file: what the job was read from; text: what stood there.
std::vector<std::string> unused_keys(const JobSpec& job, std::string_view text, std::string_view file);

}  // namespace tg::schema

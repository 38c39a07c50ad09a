// All keys of a job and of a node, each with its meaning, its allowed values and its default. The text is made from the
// option tables and is itself a valid file. `tgctl help job` and `tgctl help node` print it; deploy/jobs/reference.job
// holds the first, and a test compares them. At most 80 columns. Pure; any thread.
#pragma once

#include <string>

namespace tg::schema {

std::string job_reference();
std::string node_reference();

}  // namespace tg::schema

// How many threads this process may use: the cgroup's CPU quota, the affinity mask and the number of processors,
// whichever is least, at least 1. Read once at start.
#pragma once

#include <string>

namespace tg::engine {

int usable_processors(const std::string& root = "");  // root: the file system's root, for tests

}  // namespace tg::engine

// How many threads this process may use: the cgroup's CPU quota, the affinity mask and the number of processors,
// whichever is least, at least 1. Read once at start.
#pragma once

namespace tg::engine {

int usable_processors();

}  // namespace tg::engine

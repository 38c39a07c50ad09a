// Reads what Linux control groups say about CPU time. Pure functions over file contents, so that they can be tested;
// processors.cpp finds the files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tg::engine {

// cpu.max of cgroup v2: "max 100000" or "250000 100000" (quota and period, microseconds). Whole processors, rounded
// down, at least 1; nothing if there is no limit or the text is odd.
std::optional<int> processors_in_cpu_max(std::string_view content);

// cpu.cfs_quota_us and cpu.cfs_period_us of cgroup v1; a quota of -1 means no limit.
std::optional<int> processors_in_cfs(std::string_view quota, std::string_view period);

// The directories that can limit this process under cgroup v2, the process's own first, up to the mount point. `self`
// is the content of /proc/self/cgroup; its line "0::/a/b" gives mount/a/b, mount/a, mount.
std::vector<std::string> cgroup_directories(std::string_view self, const std::string& mount);

}  // namespace tg::engine

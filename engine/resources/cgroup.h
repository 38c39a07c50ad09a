// Parses Linux's limits of CPU time and memory: control groups, /proc/meminfo. Pure functions over file contents, so
// that they can be tested; processors.cpp and memory.cpp find the files.
#pragma once

#include <cstdint>
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

// Bytes that the group may still take, from memory.max, memory.current and memory.stat of cgroup v2, or
// memory.limit_in_bytes, memory.usage_in_bytes and memory.stat of v1. Its file cache counts as free, because the kernel
// reclaims that first. Nothing if there is no limit or the texts are odd.
std::optional<std::uint64_t> memory_left_in_group(std::string_view most, std::string_view current,
                                                  std::string_view stat);
// Bytes available without swapping, from /proc/meminfo; nothing if it does not say.
std::optional<std::uint64_t> memory_left_in_machine(std::string_view meminfo);

// The directories that can limit this process: its own group's first, then the enclosing ones, up to the mount point;
// none if no such hierarchy is mounted. `self` is the content of /proc/self/cgroup, `mounts` that of
// /proc/self/mountinfo. controller: "memory" or "cpu" of version 1; "" = version 2.
std::vector<std::string> cgroup_directories(std::string_view self, std::string_view mounts,
                                            std::string_view controller);

}  // namespace tg::engine

#include "engine/host/processors.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "engine/host/cgroup.h"
#include "engine/storage/file_content.h"

namespace tg::engine {
namespace {

int processors_in_affinity_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  // Fails on machines with more processors than the mask holds; the other sources decide there.
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return CPU_SETSIZE;
  return std::max(CPU_COUNT(&mask), 1);
}

}  // namespace

int usable_processors() {
  int count = processors_in_affinity_mask();
  const unsigned present = std::thread::hardware_concurrency();  // 0 = unknown
  if (present > 0) count = std::min(count, static_cast<int>(present));
  for (const std::string& directory : cgroup_directories(content_of("/proc/self/cgroup"), kCgroupMount)) {
    if (const auto limit = processors_in_cpu_max(content_of(directory + "/cpu.max"))) count = std::min(count, *limit);
  }
  if (const auto limit = processors_in_cfs(content_of(kCgroupMount + "/cpu/cpu.cfs_quota_us"),
                                           content_of(kCgroupMount + "/cpu/cpu.cfs_period_us"))) {
    count = std::min(count, *limit);
  }
  return count;
}

}  // namespace tg::engine

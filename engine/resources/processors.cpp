#include "engine/resources/processors.h"

#include <sched.h>

#include <algorithm>
#include <string>
#include <thread>

#include "engine/resources/cgroup.h"
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

int usable_processors(const std::string& root) {
  int count = processors_in_affinity_mask();
  const unsigned present = std::thread::hardware_concurrency();  // 0 if unknown
  if (present > 0) count = std::min(count, static_cast<int>(present));
  const std::string self = content_of(root + "/proc/self/cgroup"), mounts = content_of(root + "/proc/self/mountinfo");
  for (const std::string& directory : cgroup_directories(self, mounts, "")) {
    if (const auto limit = processors_in_cpu_max(content_of(root + directory + "/cpu.max")))
      count = std::min(count, *limit);
  }
  for (const std::string& directory : cgroup_directories(self, mounts, "cpu")) {
    if (const auto limit = processors_in_cfs(content_of(root + directory + "/cpu.cfs_quota_us"),
                                             content_of(root + directory + "/cpu.cfs_period_us")))
      count = std::min(count, *limit);
  }
  return count;
}

}  // namespace tg::engine

#include "engine/host/memory.h"

#include <algorithm>
#include <limits>

#include "engine/host/cgroup.h"
#include "engine/storage/file_content.h"

namespace tg::engine {

std::uint64_t available_memory() {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (const auto left = memory_left_in_machine(content_of("/proc/meminfo"))) bytes = *left;
  const std::string first_version = kCgroupMount + "/memory";
  if (const auto left = memory_left_in_group(content_of(first_version + "/memory.limit_in_bytes"),
                                             content_of(first_version + "/memory.usage_in_bytes"),
                                             content_of(first_version + "/memory.stat"))) {
    bytes = std::min(bytes, *left);
  }
  for (const std::string& directory : cgroup_directories(content_of("/proc/self/cgroup"), kCgroupMount)) {
    if (const auto left =
            memory_left_in_group(content_of(directory + "/memory.max"), content_of(directory + "/memory.current"),
                                 content_of(directory + "/memory.stat"))) {
      bytes = std::min(bytes, *left);
    }
  }
  return bytes;
}

}  // namespace tg::engine

#include "engine/resources/memory.h"

#include <algorithm>
#include <limits>

#include "engine/resources/cgroup.h"
#include "engine/storage/file_content.h"

namespace tg::engine {
namespace {

struct Files {
  const char *controller, *most, *current;
};
constexpr Files kVersions[] = {{"memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes"},
                               {"", "/memory.max", "/memory.current"}};

}  // namespace

std::uint64_t available_memory(const std::string& root) {
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
  if (const auto left = memory_left_in_machine(content_of(root + "/proc/meminfo"))) bytes = *left;
  const std::string self = content_of(root + "/proc/self/cgroup"), mounts = content_of(root + "/proc/self/mountinfo");
  for (const Files& files : kVersions) {
    for (const std::string& directory : cgroup_directories(self, mounts, files.controller)) {
      const std::string group = root + directory;
      const auto left = memory_left_in_group(content_of(group + files.most), content_of(group + files.current),
                                             content_of(group + "/memory.stat"));
      if (left) bytes = std::min(bytes, *left);
    }
  }
  return bytes;
}

}  // namespace tg::engine

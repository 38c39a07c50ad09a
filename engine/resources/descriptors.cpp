#include "engine/resources/descriptors.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace tg::engine {

Status reserve_descriptors(std::uint64_t needed, const std::string& what) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return Error{ErrorKind::kIo, std::string("cannot read the limit of open files: ") + std::strerror(errno)};
  if (limit.rlim_cur >= needed) return {};
  const rlim_t allowed = limit.rlim_max;
  limit.rlim_cur = needed;
  if (allowed >= needed && ::setrlimit(RLIMIT_NOFILE, &limit) == 0) return {};
  return Error{ErrorKind::kIo, what + " needs " + std::to_string(needed) + " open files and connections, and " +
                                   std::to_string(allowed) + " are allowed; raise the limit: ulimit -n " +
                                   std::to_string(needed) + ", or LimitNOFILE in a systemd unit"};
}

std::uint64_t allowed_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace tg::engine

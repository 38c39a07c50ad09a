// Tells one version of a file from another: the key file and the configuration are read again when they change.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace tg::daemon {

struct FileStamp {
  std::int64_t seconds = 0, nanoseconds = 0;
  std::uint64_t inode = 0, size = 0;
  bool operator==(const FileStamp&) const = default;
};

// That of no file where there is none.
inline FileStamp file_stamp(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ino, static_cast<std::uint64_t>(status.st_size)};
}

}  // namespace tg::daemon

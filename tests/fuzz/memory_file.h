// An input as a file, for readers that take a path. One thread.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/base/check.h"

namespace tg::fuzz {

class MemoryFile {
 public:
  MemoryFile(const void* data, std::size_t size) : file_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    TG_CHECK(file_ >= 0 && ::write(file_, data, size) == static_cast<ssize_t>(size), size);
    TG_CHECK(::fchmod(file_, 0600) == 0);
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  const int file_;
};

}  // namespace tg::fuzz

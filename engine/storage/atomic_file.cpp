#include "engine/storage/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "engine/storage/disk_fault.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

constexpr const char* kPartialSuffix = ".partial";
constexpr std::size_t kMostWriteBytes = std::size_t{1} << 30;  // Linux writes at most 2 GiB - 4 KiB in one call

// Whether the call may be made (a test may forbid it); errno says why not.
bool may(DiskCall call) {
  const int fault = disk_fault(call);
  if (fault != 0) errno = fault;
  return fault == 0;
}

int sync_directory_of(const std::string& path) {
  if (!may(DiskCall::kFsync)) return -1;
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const int directory = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  const int result = ::fsync(directory);
  const int cause = errno;
  ::close(directory);
  errno = cause;
  return result;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), partial_(path_ + kPartialSuffix) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

Error AtomicFile::failed(const std::string& call) const {
  return {ErrorKind::kIo, "cannot write " + path_ + ": " + call + ": " + std::strerror(errno) +
                              "; check free space and permissions of its directory"};
}

Status AtomicFile::open() {
  TG_CHECK(descriptor_ < 0, path_);
  if (!may(DiskCall::kOpen)) return failed("open " + partial_);
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return failed("open " + partial_);
  return {};
}

Status AtomicFile::write(const void* bytes, std::size_t count) {
  TG_CHECK(descriptor_ >= 0, path_);
  if (!may(DiskCall::kWrite)) return failed("write");
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor_, at, std::min(count, kMostWriteBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write");
    at += written;
    count -= static_cast<std::size_t>(written);
  }
  return {};
}

Status AtomicFile::commit() {
  TG_CHECK(descriptor_ >= 0, path_);
  if (!may(DiskCall::kFsync) || ::fsync(descriptor_) != 0) return failed("fsync");
  if (!may(DiskCall::kRename) || std::rename(partial_.c_str(), path_.c_str()) != 0) return failed("rename");
  const int done = descriptor_;
  descriptor_ = -1;
  if (::close(done) != 0) return failed("close");
  if (sync_directory_of(path_) != 0) return failed("fsync of the directory");
  return {};
}

void delete_partial_files(const std::string& directory) {
  std::error_code problem;
  std::filesystem::directory_iterator entries(directory, problem);
  for (; !problem && entries != std::filesystem::directory_iterator(); entries.increment(problem))
    if (entries->path().native().ends_with(kPartialSuffix)) ::unlink(entries->path().c_str());
}

}  // namespace tg::engine

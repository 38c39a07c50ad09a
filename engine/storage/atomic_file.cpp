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
constexpr const char* kOtherSuffix = ".other";
constexpr std::size_t kMaxWriteBytes = std::size_t{1} << 30;  // Linux writes at most 2 GiB - 4 KiB in one call

// Whether the call may be made (a test may forbid it); errno says why not.
bool may(DiskCall call) {
  const int fault = disk_fault(call);
  if (fault != 0) errno = fault;
  return fault == 0;
}

Error cannot_write(const std::string& path, const std::string& call) {
  return {ErrorKind::kIo, "cannot write " + path + ": " + call + ": " + std::strerror(errno) +
                              "; check free space and permissions of its directory"};
}

bool write_all(int descriptor, const char* at, std::size_t count) {
  if (!may(DiskCall::kWrite)) return false;
  while (count > 0) {
    const ssize_t written = ::write(descriptor, at, std::min(count, kMaxWriteBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += written;
    count -= static_cast<std::size_t>(written);
  }
  return true;
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

// Over what the file holds, so that it takes no other space.
Status overwrite(const std::string& file, std::string_view content, const std::string& named) {
  const auto opened = [&] { return ::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644); };
  const int descriptor = may(DiskCall::kOpen) ? opened() : -1;
  if (descriptor < 0) return cannot_write(named, "open " + file);
  Status status;
  if (!write_all(descriptor, content.data(), content.size()))
    status = cannot_write(named, "write");
  else if (::ftruncate(descriptor, static_cast<off_t>(content.size())) != 0)
    status = cannot_write(named, "ftruncate");
  else if (!may(DiskCall::kFsync) || ::fsync(descriptor) != 0)
    status = cannot_write(named, "fsync");
  ::close(descriptor);
  return status;
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), partial_(path_ + kPartialSuffix) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_.c_str());
}

Error AtomicFile::failed(const std::string& call) const { return cannot_write(path_, call); }

Status AtomicFile::open() {
  TG_CHECK(descriptor_ < 0, path_);
  if (!may(DiskCall::kOpen)) return failed("open " + partial_);
  descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return failed("open " + partial_);
  return {};
}

Status AtomicFile::write(const void* bytes, std::size_t count) {
  TG_CHECK(descriptor_ >= 0, path_);
  if (!write_all(descriptor_, static_cast<const char*>(bytes), count)) return failed("write");
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

Status exchange_file(const std::string& path, std::string_view content) {
  const std::string other = path + kOtherSuffix;
  if (Status written = overwrite(other, content, path); !written) return written;
  if (!may(DiskCall::kRename)) return cannot_write(path, "rename");
  if (::renameat2(AT_FDCWD, other.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    // The first content, or a file system that cannot exchange; the next one's place, if there is any.
    if (std::rename(other.c_str(), path.c_str()) != 0) return cannot_write(path, "rename");
    (void)overwrite(other, content, path);
  }
  if (sync_directory_of(path) != 0) return cannot_write(path, "fsync of the directory");
  return {};
}

void delete_partial_files(const std::string& directory) {
  std::error_code problem;
  std::filesystem::directory_iterator entries(directory, problem);
  for (; !problem && entries != std::filesystem::directory_iterator(); entries.increment(problem))
    if (entries->path().native().ends_with(kPartialSuffix)) ::unlink(entries->path().c_str());
}

}  // namespace tg::engine

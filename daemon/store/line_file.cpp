#include "daemon/store/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/storage/disk_fault.h"

namespace tg::daemon {
namespace {

// Writes all of it at this place; errno says why not.
bool write_at(int descriptor, std::string_view bytes, std::uint64_t offset) {
  if (const int fault = engine::disk_fault(engine::DiskCall::kWrite); fault != 0) {
    errno = fault;
    return false;
  }
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return true;
}

}  // namespace

LineFile::LineFile(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) cause_ = errno;
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LineFile::add(std::string_view line) {
  if (waiting_.size() + line.size() >= kMostWaitingBytes) {
    ++left_out_;
    return flush();
  }
  waiting_ += line;
  waiting_ += '\n';
  ++waiting_lines_;
  if (waiting_.size() >= kFlushBytes) flush();
}

void LineFile::flush() {
  if (waiting_.empty() || descriptor_ < 0) return;
  if (write_at(descriptor_, waiting_, bytes_)) {
    bytes_ += waiting_.size();
    waiting_.clear();
    waiting_lines_ = 0;
    return;
  }
  cause_ = errno;
  // A part of it may have been taken.
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(bytes_));
}

Status LineFile::close() {
  flush();
  bool whole = descriptor_ >= 0 && waiting_.empty() && left_out_ == 0;
  if (descriptor_ >= 0) {
    if (::fsync(descriptor_) != 0) {
      cause_ = errno;
      whole = false;
    }
    ::close(std::exchange(descriptor_, -1));
  }
  if (whole) return {};
  return Error{ErrorKind::kIo,
               path_ + " lacks " + std::to_string(waiting_lines_ + left_out_) + " lines: " + std::strerror(cause_)};
}

}  // namespace tg::daemon

#include "daemon/store/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "engine/storage/atomic_file.h"
#include "engine/storage/disk_fault.h"

namespace tg::daemon {
namespace {

// Writes all bytes at the offset; if that fails, errno says why.
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

// The size of the file up to and with its last newline.
std::uint64_t whole_lines_bytes(int descriptor) {
  const off_t size = ::lseek(descriptor, 0, SEEK_END);
  char part[4096];
  for (std::uint64_t end = size < 0 ? 0 : static_cast<std::uint64_t>(size); end > 0;) {
    const std::uint64_t begin = end - std::min<std::uint64_t>(end, sizeof part);
    const ssize_t got = ::pread(descriptor, part, end - begin, static_cast<off_t>(begin));
    if (got != static_cast<ssize_t>(end - begin)) return end;
    const std::size_t newline = std::string_view(part, end - begin).rfind('\n');
    if (newline != std::string_view::npos) return begin + newline + 1;
    end = begin;
  }
  return 0;
}

// The step with which a line of metrics.jsonl begins.
std::optional<std::uint64_t> step_of(std::string_view line) {
  constexpr std::string_view kBegins = "{\"step\":";
  if (!line.starts_with(kBegins)) return std::nullopt;
  std::uint64_t step = 0;
  const auto [stop, code] = std::from_chars(line.data() + kBegins.size(), line.data() + line.size(), step);
  if (code != std::errc()) return std::nullopt;
  return step;
}

}  // namespace

LineFile::LineFile(std::string path, Mode mode)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | (mode == Mode::kTruncate ? O_TRUNC : 0), 0644)) {
  if (descriptor_ < 0) {
    error_ = errno;
    return;
  }
  if (mode == Mode::kTruncate) return;
  bytes_ = whole_lines_bytes(descriptor_);
  // If the file cannot be truncated, the next line overwrites the torn one.
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(bytes_));
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool LineFile::add(std::string_view line) {
  const std::lock_guard lock(mutex_);
  const std::size_t before = waiting_.size();
  if (before + line.size() >= kMaxWaitingBytes) {
    ++dropped_;
    return true;
  }
  waiting_ += line;
  waiting_ += '\n';
  ++waiting_lines_;
  return waiting_.size() / kFlushBytes > before / kFlushBytes;
}

void LineFile::flush() {
  const std::lock_guard writer(writing_);
  if (descriptor_ < 0) return;
  std::string lines;
  std::uint64_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    lines.swap(waiting_);
    std::swap(count, waiting_lines_);
  }
  if (write_at(descriptor_, lines, bytes_)) {
    bytes_ += lines.size();
    return;
  }
  error_ = errno;
  // A part may have been written.
  [[maybe_unused]] const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(bytes_));
  const std::lock_guard lock(mutex_);
  waiting_.insert(0, lines);
  waiting_lines_ += count;
}

LineFile::Lines LineFile::lines() {
  const std::scoped_lock both(writing_, mutex_);
  return {bytes_, waiting_};
}

Status LineFile::sync() const {
  int cause = descriptor_ < 0 ? error_ : engine::disk_fault(engine::DiskCall::kFsync);
  if (cause == 0 && ::fsync(descriptor_) != 0) cause = errno;
  if (cause == 0) return {};
  return Error{ErrorKind::kIo, "cannot sync " + path_ + ": " + std::strerror(cause)};
}

Status LineFile::close() {
  flush();
  const std::scoped_lock both(writing_, mutex_);
  bool whole = descriptor_ >= 0 && waiting_.empty() && dropped_ == 0;
  if (descriptor_ >= 0) {
    if (::fsync(descriptor_) != 0) {
      error_ = errno;
      whole = false;
    }
    ::close(std::exchange(descriptor_, -1));
  }
  if (whole) return {};
  return Error{ErrorKind::kIo,
               path_ + " lacks " + std::to_string(waiting_lines_ + dropped_) + " lines: " + std::strerror(error_)};
}

Status truncate_after(const std::string& path, std::uint64_t step) {
  const auto unreadable = [&] { return Error{ErrorKind::kIo, "cannot read " + path + ": " + std::strerror(errno)}; };
  if (::access(path.c_str(), F_OK) != 0) return errno == ENOENT ? Status() : Status(unreadable());
  std::ifstream file(path, std::ios::binary);
  if (!file) return unreadable();
  // Steps only increase, so the lines to keep are the beginning of the file.
  std::uint64_t kept = 0, all = 0;
  bool beyond = false;
  for (std::string line; std::getline(file, line); all += line.size() + 1) {
    const bool torn = file.eof();  // there is no newline
    beyond = beyond || torn || step_of(line).value_or(0) > step;
    if (!beyond) kept = all + line.size() + 1;
  }
  if (file.bad()) return unreadable();
  if (!beyond) return {};
  engine::AtomicFile cut(path);
  if (Status opened = cut.open(); !opened) return opened;
  file.clear();
  file.seekg(0);
  std::string part(LineFile::kMaxWaitingBytes, '\0');
  for (std::uint64_t at = 0; at < kept; at += part.size()) {
    part.resize(std::min<std::uint64_t>(part.size(), kept - at));
    if (!file.read(part.data(), static_cast<std::streamsize>(part.size()))) return unreadable();
    if (Status written = cut.write(part.data(), part.size()); !written) return written;
  }
  return cut.commit();
}

}  // namespace tg::daemon

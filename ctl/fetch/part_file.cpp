#include "ctl/fetch/part_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace tg::ctl {

PartFile::PartFile(std::string path)
    : path_(std::move(path)), part_path_(path_ + "." + std::to_string(getpid()) + ".part") {}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::move(other.path_)),
      part_path_(std::move(other.part_path_)),
      file_(std::exchange(other.file_, -1)),
      exists_(std::exchange(other.exists_, false)) {}

PartFile::~PartFile() {
  if (file_ >= 0) ::close(file_);
  if (exists_) ::unlink(part_path_.c_str());
}

Error PartFile::error(const char* what) const {
  return {ErrorKind::kIo, part_path_ + " cannot be " + what + ": " + std::strerror(errno)};
}

Status PartFile::open() {
  file_ = ::open(part_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file_ < 0) return error("created");
  exists_ = true;
  return {};
}

Status PartFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return error("written");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status PartFile::close() {
  if (::fsync(file_) != 0) return error("synced");
  if (::close(std::exchange(file_, -1)) != 0) return error("closed");
  return {};
}

Status PartFile::keep() {
  if (std::rename(part_path_.c_str(), path_.c_str()) != 0) return error("renamed");
  exists_ = false;
  return {};
}

std::uint64_t PartFile::room() const {
  std::error_code code;
  return std::filesystem::space(part_path_, code).available;  // the maximum if it is unknown
}

Status check_writable(const std::string& path, bool force) {
  std::error_code code;
  if (path.empty() || force || !std::filesystem::exists(std::filesystem::symlink_status(path, code))) return {};
  return Error{ErrorKind::kRefused, path + " already exists; --force replaces it"};
}

Status write_file(const std::string& path, std::string_view text) {
  PartFile file(path);
  if (const Status status = file.open(); !status) return status;
  if (const Status status = file.write(text); !status) return status;
  if (const Status status = file.close(); !status) return status;
  return file.keep();
}

Status sync_folder(const std::string& folder) {
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return Error{ErrorKind::kIo, folder + " cannot be opened: " + std::strerror(errno)};
  const bool synced = ::fsync(file) == 0;
  const int cause = errno;
  ::close(file);
  if (!synced) return Error{ErrorKind::kIo, folder + " cannot be synced: " + std::strerror(cause)};
  return {};
}

}  // namespace tg::ctl

#include "kernels/base/regular_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tg {
namespace {

constexpr std::size_t kMaxReadBytes = std::size_t{1} << 30;  // Linux reads at most 2 GiB - 4 KiB in one call

Error cause_of(int number) {
  return {number == ENOENT || number == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo, std::strerror(number)};
}

}  // namespace

Result<RegularFile> RegularFile::open(const std::string& path, Links links) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::kRefuse ? O_NOFOLLOW : 0);
  const int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return cause_of(errno);
  RegularFile file(descriptor, {});
  if (::fstat(descriptor, &file.facts_) != 0) return cause_of(errno);
  if (S_ISDIR(file.facts_.st_mode)) return cause_of(EISDIR);
  if (!S_ISREG(file.facts_.st_mode)) return Error{ErrorKind::kIo, "it is not a regular file"};
  return file;
}

Result<std::string> RegularFile::text(const std::string& path, std::uint64_t most_bytes, Links links) {
  const Result<RegularFile> file = open(path, links);
  if (!file) return file.error();
  if (file->bytes() > most_bytes) return Error{ErrorKind::kCorrupt, "it is too large"};
  std::string text(file->bytes(), '\0');
  const Result<std::size_t> got = file->read(0, std::as_writable_bytes(std::span(text)));
  if (!got) return got.error();
  text.resize(*got);
  return text;
}

RegularFile::RegularFile(RegularFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), facts_(other.facts_) {}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

struct stat RegularFile::facts_now() const {
  struct stat facts {};
  return ::fstat(descriptor_, &facts) == 0 ? facts : facts_;
}

Result<std::size_t> RegularFile::read(std::uint64_t at, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(descriptor_, bytes.data() + done, std::min(bytes.size() - done, kMaxReadBytes),
                                static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cause_of(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

int RegularFile::release() { return std::exchange(descriptor_, -1); }

}  // namespace tg

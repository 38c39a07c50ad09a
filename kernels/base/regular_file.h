// A regular file, opened to be read: how every file is opened that a job, a configuration or a stranger names. A pipe,
// a device or a folder is refused at once: opening a pipe would wait for a writer, and a device has no end. Errors
// (kNotFound, kIo) are the cause alone, such as "No such file or directory"; the caller names the file and says what to
// do. Reading moves no position: any threads, several at a time.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/base/status.h"

namespace tg {

class RegularFile {
 public:
  enum class Links : std::uint8_t { kFollow, kRefuse };
  static Result<RegularFile> open(const std::string& path, Links links = Links::kFollow);
  // The whole file; kCorrupt if it is larger than that.
  static Result<std::string> text(const std::string& path, std::uint64_t most_bytes, Links links = Links::kFollow);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  // As it was when it was opened: its size, its owner, its times.
  const struct stat& facts() const { return facts_; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(facts_.st_size); }
  struct stat facts_now() const;

  // Fills `bytes` from there on; returns how many there were, fewer only where the file ends.
  Result<std::size_t> read(std::uint64_t at, std::span<std::byte> bytes) const;
  // Gives up the descriptor: it is the caller's to close.
  int release();

 private:
  RegularFile(int descriptor, const struct stat& facts) : descriptor_(descriptor), facts_(facts) {}

  int descriptor_ = -1;
  struct stat facts_ {};
};

}  // namespace tg

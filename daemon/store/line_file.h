// A file that grows by whole lines, and contains only whole lines even if the disk fails. Lines are buffered in memory
// until flush(). Lines that the disk refuses are retried with the next ones while at most kMaxWaitingBytes are
// buffered; further lines are dropped. Any thread; add() waits for no disk.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace tg::daemon {

class LineFile {
 public:
  static constexpr std::size_t kFlushBytes = 8 * 1024, kMaxWaitingBytes = 1024 * 1024;

  enum class Mode : std::uint8_t { kTruncate, kAppend };
  // Replaces the file, or appends to its whole lines after removing a torn last one.
  explicit LineFile(std::string path, Mode mode = Mode::kTruncate);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // `line` has no newline. True if a flush is due: kFlushBytes more are buffered.
  bool add(std::string_view line);
  void flush();
  // Every line: the beginning of the file with these bytes, then what waits for the disk.
  struct Lines {
    std::uint64_t file_bytes = 0;
    std::string waiting;
  };
  Lines lines();
  // Makes flushed lines survive a power loss. Not concurrently with close().
  Status sync() const;
  // Afterwards nothing is written: size and hash are final. The error says how many lines are missing, and why.
  Status close();

 private:
  const std::string path_;
  std::mutex writing_;  // guards these, also while the disk is waited for; taken before the other one
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;  // size of the whole lines in the file
  int error_ = 0;            // errno of the last failure
  std::mutex mutex_;         // guards these
  std::string waiting_;
  std::uint64_t waiting_lines_ = 0, dropped_ = 0;
};

// Removes the lines of a metrics file after that step, and a torn last one. A crash at any moment leaves the file as it
// was or truncated. A file without such lines is not touched, and a missing file is no error.
Status truncate_after(const std::string& path, std::uint64_t step);

}  // namespace tg::daemon

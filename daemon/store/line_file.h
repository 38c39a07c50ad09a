// A file that grows by whole lines, and has nothing but whole lines whatever the disk does. Lines wait in memory until
// enough are there, or flush(). What the disk does not take then is tried again with the next lines, as long as no more
// than kMaxWaitingBytes wait; further lines are left out. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace tg::daemon {

class LineFile {
 public:
  static constexpr std::size_t kFlushBytes = 8 * 1024, kMaxWaitingBytes = 1024 * 1024;

  enum class Begin : std::uint8_t { kAnew, kGoesOn };
  // Replaces what is there, or adds to its whole lines; a torn last one goes.
  explicit LineFile(std::string path, Begin begin = Begin::kAnew);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  void add(std::string_view line);  // without its newline
  void flush();
  // What was flushed is on the disk, also if the machine loses power. Any thread, beside all but close().
  Status sync() const;
  // Nothing is written after this: its size and hash stay. The error says how many lines are missing, and why.
  Status close();

 private:
  const std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;  // of the lines in the file
  std::string waiting_;
  std::uint64_t waiting_lines_ = 0, left_out_ = 0;
  int cause_ = 0;  // errno of the last failure
};

// Leaves the lines of a metrics file up to and with that step, and no torn last one: a crash at any moment leaves the
// file as it was or cut. A file that has nothing else, or is not there, stays as it is.
Status cut_back(const std::string& path, std::uint64_t step);

}  // namespace tg::daemon

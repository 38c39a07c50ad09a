// A file that appears complete or not at all: written under a temporary name, synced, then renamed. The destructor
// removes a file that was not kept. Errors are kIo with path and cause. Main thread only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace tg::ctl {

class PartFile {
 public:
  explicit PartFile(std::string path);
  ~PartFile();
  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;

  Status open();
  Status write(std::string_view bytes);
  Status close();              // after a sync to disk
  Status keep();               // renames it, and replaces an existing file
  std::uint64_t room() const;  // bytes left on its disk
  const std::string& path() const { return path_; }
  const std::string& part_path() const { return part_path_; }  // its temporary name

 private:
  Error error(const char* what) const;

  std::string path_;
  std::string part_path_;
  int file_ = -1;
  bool exists_ = false;
};

// Refuses an existing path without --force; "" is not refused.
Status check_writable(const std::string& path, bool force);
// Writes a file with this text.
Status write_file(const std::string& path, std::string_view text);

// Syncs a folder, so that renames in it survive a power failure.
Status sync_folder(const std::string& folder);

}  // namespace tg::ctl

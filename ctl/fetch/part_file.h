// A file that appears whole or not at all: written beside its place under another name, synced, then renamed. What was
// not kept is removed by the destructor. Errors are kIo with path and cause. Main thread only.
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
  Status close();              // synced to the disk
  Status keep();               // takes its place; what was there is replaced
  std::uint64_t room() const;  // bytes that its disk has left for it
  const std::string& path() const { return path_; }
  const std::string& part_path() const { return part_path_; }  // where it lies until it is kept

 private:
  Error error(const char* what) const;

  std::string path_;
  std::string part_path_;
  int file_ = -1;
  bool exists_ = false;
};

// Refused where something has that name and nobody said --force. No name, "", is free.
Status may_write(const std::string& path, bool force);
// A file of this text.
Status write_whole(const std::string& path, std::string_view text);

// So that renames survive a power cut.
Status sync_folder(const std::string& folder);

}  // namespace tg::ctl

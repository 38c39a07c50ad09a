// Replaces a file so that a crash at any moment leaves either the old content or the new one: writes PATH.partial,
// fsync, rename, fsync of the directory. A .partial left by a crash is overwritten by the next writer of the path, or
// goes with delete_partial_files.
// Errors (kIo) name the path, the failing call and its cause. One thread; the caller serializes writers of one path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/base/status.h"

namespace tg::engine {

class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();  // without commit() the partial file is removed and the old content stays
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  Status open();
  Status write(const void* bytes, std::size_t count);
  Status commit();

 private:
  Error failed(const std::string& call) const;

  const std::string path_;
  const std::string partial_;
  int descriptor_ = -1;
};

// The same for a small file that has to be replaced on a full disk too: PATH.other, as long as PATH, is overwritten and
// synced, and the two change names. Takes space for the first content, and where one is longer than those before.
Status exchange_file(const std::string& path, std::string_view content);

// Deletes what crashed writers left in a directory. Call it only while nothing writes there.
void delete_partial_files(const std::string& directory);

}  // namespace tg::engine

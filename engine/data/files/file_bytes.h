// A data file's content, decompressed if it is a gzip file (zlib looks at the bytes, not at the name). Only regular
// files are read. Errors name the file, what is wrong with it and what to do. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/choices.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/status.h"

namespace tg::engine {

inline constexpr std::size_t kMaxDataFileBytes = std::size_t{1} << 30;  // decompressed; MNIST 47 MB, CIFAR-10 31 MB

// Reads a file piece by piece: never more of it is in memory than requested, however much a gzip file unpacks to.
class DataFile {
 public:
  static Result<DataFile> open(const std::string& path);

  // Reads on until `bytes` holds `size`, or the file has ended.
  Status read_up_to(std::size_t size, std::vector<std::uint8_t>& bytes);

 private:
  struct Close {
    void operator()(void* file) const;
  };
  DataFile(std::string path, void* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<void, Close> file_;  // zlib's gzFile
};

Result<RegularFile> open_data_file(const std::string& path);
// Reads a whole regular file into `bytes`; kCorrupt if it holds more than `most`.
Status read_file(const std::string& path, std::size_t most, std::vector<std::uint8_t>& bytes);
// The same of an open one, whose name is for errors.
Status read_file(const RegularFile& file, const std::string& path, std::size_t most, std::vector<std::uint8_t>& bytes);
// A file's lines, without their ends; kCorrupt beyond kMaxListBytes or kMaxSamples lines, or if it has a zero byte.
Result<std::vector<std::string>> read_lines(const std::string& path);
// The names of classes, one per line of a file; classes without a line are named by their numbers, and without a file
// (path "") all are. More names than classes are kept.
Result<std::vector<std::string>> read_class_names(const std::string& path, std::size_t classes);

// The first existing file of directory/name and directory/subfolder/name, for the names in order; "" if none exists.
std::string find_file(const std::string& directory, const std::string& subfolder,
                      const std::vector<std::string>& names);

// kInvalidJob unless `directory` is a directory that can be listed; `dataset` and `files` go into the sentence.
Status check_directory(const std::string& directory, DatasetKind dataset, const std::string& files);

}  // namespace tg::engine

// A data file's content in memory, decompressed where it is a gzip file (zlib looks at the bytes, not at the name).
// Errors name the file, what is wrong with it and what to do. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/base/choices.h"
#include "kernels/base/status.h"

namespace tg::engine {

inline constexpr std::size_t kMostDataFileBytes = std::size_t{1} << 30;  // decompressed; MNIST 47 MB, CIFAR-10 31 MB

Result<std::vector<std::uint8_t>> read_file_bytes(const std::string& path, std::size_t most_bytes = kMostDataFileBytes);

// The first of directory/name and directory/subfolder/name that exists, for the names in order; "" if none does.
std::string find_file(const std::string& directory, const std::string& subfolder,
                      const std::vector<std::string>& names);

// kInvalidJob unless `directory` is a directory that can be listed; `dataset` and `files` go into the sentence.
Status check_directory(const std::string& directory, DatasetKind dataset, const std::string& files);

}  // namespace tg::engine

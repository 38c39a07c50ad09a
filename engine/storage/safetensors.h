// safetensors files: u64 little-endian header size, JSON header, tensors without holes, data start aligned to 8.
// Writing is atomic: temporary file, fsync, rename, fsync of the directory. Reading bounds-checks every offset.
// Any thread; the caller serializes writers of one path.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/segment.h"
#include "engine/storage/sha256.h"
#include "engine/storage/tensor_image.h"
#include "kernels/base/status.h"

namespace tg::engine {

using tg::FileMark;

// Writes through a small buffer: the model is never in memory twice.
Result<FileMark> write_image(const std::string& path, const TensorImage& image);
Result<FileMark> mark_of_file(const std::string& path);
// The content without the values, which are read from the file on demand; any thread.
struct OpenTensors {
  std::map<std::string, std::string> metadata;
  std::vector<TensorSource> tensors;  // in the file's order; they keep the file open
};
Result<OpenTensors> open_safetensors(const std::string& path);

// A flat array's segments as tensors, padding left out; `read` reads the whole array.
std::vector<TensorSource> tensors_of(const SegmentTable& segments, const ReadFloats& read,
                                     const std::string& suffix = "");

// Atomic replacement of a small file, as above.
Status write_file_atomically(const std::string& path, std::string_view content);

}  // namespace tg::engine

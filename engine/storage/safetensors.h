// safetensors files: u64 little-endian header size, JSON header, tensors without holes, data start aligned to 8.
// Writing is atomic: temporary file, fsync, rename, fsync of the directory. Reading bounds-checks every offset.
// Any thread; the caller serializes writers of one path.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/segment.h"
#include "kernels/base/status.h"

namespace tg::engine {

// Copies elements [first, first + values.size()) out of an array, wherever it is.
using ReadFloats = std::function<void(std::size_t first, std::span<float> values)>;

struct TensorSource {
  std::string name;
  std::vector<std::int64_t> shape;
  ReadFloats read;  // float32, row-major
};

struct LoadedTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, std::vector<float>> values;
};

// Tensor after tensor through a small buffer: a model is never in memory a second time.
Status write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                         const std::map<std::string, std::string>& metadata);
Result<LoadedTensors> read_safetensors(const std::string& path);

// A flat array's segments as tensors, padding left out; `read` is of the whole array.
std::vector<TensorSource> tensors_of(const SegmentTable& segments, const ReadFloats& read,
                                     const std::string& suffix = "");

// Atomic replacement of a small file, as above.
Status write_file_atomically(const std::string& path, std::string_view content);

}  // namespace tg::engine

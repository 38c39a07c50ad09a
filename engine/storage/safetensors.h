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
#include "kernels/base/status.h"

namespace tg::engine {

struct TensorView {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;  // float32, row-major
};

struct LoadedTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, std::vector<float>> values;
};

Status write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata);
Result<LoadedTensors> read_safetensors(const std::string& path);

// A flat array's segments as tensors, padding left out; the views alias `flat`.
std::vector<TensorView> tensors_of(const SegmentTable& segments, std::span<const float> flat,
                                   const std::string& suffix = "");

// Atomic replacement of a small file, as above.
Status write_file_atomically(const std::string& path, std::string_view content);

}  // namespace tg::engine

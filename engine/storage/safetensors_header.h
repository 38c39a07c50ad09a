// The JSON header of a safetensors file, as entries that can be trusted: the one place that parses it.
//
//   header := {"__metadata__": {name: text, ...}, name: tensor, ...}
//   tensor := {"dtype": "F32", "shape": [n, ...], "data_offsets": [begin, end]}
//
// Accepted: float32, every name once, at most kMaxTensors tensors of at most kMaxTensorDimensions dimensions, the
// product of a shape times 4 equal to end - begin, tensors in file order tiling the data without overlap or hole.
// Tensors of I64, which PyTorch uses for counters, are skipped: they are checked as well (times 8) and left out. Pure;
// any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

inline constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{1} << 24;
inline constexpr std::size_t kMaxTensors = 1 << 16;
inline constexpr std::size_t kMaxTensorDimensions = 8;

struct TensorEntry {
  std::string name;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // byte range in the data part
  bool counts = false;               // I64
};

struct TensorHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;  // ascending by begin
};

// data_bytes: the number of bytes after the header. A kCorrupt error is a phrase that completes "FILE is damaged: "; a
// tensor of another type is a kInvalidJob error, whose phrase completes "FILE: ".
Result<TensorHeader> parse_tensor_header(std::string_view json, std::uint64_t data_bytes);

// Compact JSON with the tensors in order of their begin; kFailed if a text is not UTF-8.
Result<std::string> format_tensor_header(const TensorHeader& header);

}  // namespace tg::engine

// A safetensors file as bytes, whether or not it is on a disk: the header, then the tensors one after another, read
// from where they are. The bytes written to a file and those served from memory are the same.
//
//   image := u64 little-endian header size | JSON header, spaces up to a multiple of 8 | float32 values
//
// Holds no values; reads through the sources, so the rules of the sources' threads apply.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/status.h"

namespace tg::engine {

// Copies elements [first, first + values.size()) from an array, wherever it is. An error names the place.
using ReadFloats = std::function<Status(std::size_t first, std::span<float> values)>;

struct TensorSource {
  std::string name;
  std::vector<std::int64_t> shape;
  ReadFloats read;  // float32, row-major
};

class TensorImage {
 public:
  // An error is a phrase for "cannot write FILE: ".
  static Result<TensorImage> of(std::vector<TensorSource> tensors, const std::map<std::string, std::string>& metadata);

  std::uint64_t bytes() const { return head_.size() + value_bytes_; }
  // offset + to.size() is at most bytes().
  Status read(std::uint64_t offset, std::span<std::byte> to) const;
  // SHA-256 of the values alone, as stored in the file.
  Result<std::string> values_sha256() const;
  // Passes the bytes from `offset` to the end through a small buffer, in order.
  Status for_each_slice(std::uint64_t offset, const std::function<Status(std::span<const std::byte>)>& take) const;

 private:
  struct Tensor {
    std::uint64_t begin = 0, end = 0;  // byte range in the file
    ReadFloats read;
  };
  std::string head_;             // everything before the values
  std::vector<Tensor> tensors_;  // none is empty
  std::uint64_t value_bytes_ = 0;
};

}  // namespace tg::engine

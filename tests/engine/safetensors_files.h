// Whole safetensors files, as tests write and read them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/storage/safetensors.h"

namespace tg::engine {

struct LoadedTensors {
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, std::vector<float>> values;
};

inline Status write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                                const std::map<std::string, std::string>& metadata) {
  const Result<TensorImage> image = TensorImage::of(std::move(tensors), metadata);
  if (!image) return image.error();
  const Result<FileMark> written = write_image(path, *image);
  return written ? Status() : Status(written.error());
}

inline Result<LoadedTensors> read_safetensors(const std::string& path) {
  Result<OpenTensors> open = open_safetensors(path);
  if (!open) return open.error();
  LoadedTensors loaded;
  loaded.metadata = std::move(open->metadata);
  for (const TensorSource& tensor : open->tensors) {
    std::uint64_t elements = 1;
    for (const std::int64_t dimension : tensor.shape) elements *= static_cast<std::uint64_t>(dimension);
    std::vector<float> values(elements);
    if (const Status read = tensor.read(0, values); !read) return read.error();
    loaded.shapes.emplace(tensor.name, tensor.shape);
    loaded.values.emplace(tensor.name, std::move(values));
  }
  return loaded;
}

}  // namespace tg::engine

#include "engine/storage/tensor_image.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/storage/safetensors_header.h"
#include "engine/storage/sha256.h"

namespace tg::engine {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);
constexpr std::size_t kAlignment = 8;  // bytes; the values start at a multiple of this
constexpr std::size_t kBufferElements = 256 * 1024;

}  // namespace

Result<TensorImage> TensorImage::of(std::vector<TensorSource> tensors,
                                    const std::map<std::string, std::string>& metadata) {
  TensorHeader header;
  header.metadata = metadata;
  std::uint64_t at = 0;
  for (const TensorSource& tensor : tensors) {
    if (tensor.shape.size() > kMaxTensorDimensions)
      return Error{ErrorKind::kFailed, "tensor \"" + tensor.name + "\" has too many dimensions"};
    std::uint64_t bytes = sizeof(float);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    header.tensors.push_back({tensor.name, tensor.shape, at, at + bytes});
    at += bytes;
  }
  Result<std::string> json = format_tensor_header(header);
  if (!json) return json.error();
  json->resize((json->size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t header_bytes = json->size();
  if (header_bytes > kMaxHeaderBytes) return Error{ErrorKind::kFailed, "its header would be too large"};
  TensorImage image;
  image.head_.assign(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
  image.head_ += *json;
  image.value_bytes_ = at;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const TensorEntry& entry = header.tensors[t];
    if (entry.begin == entry.end) continue;
    image.tensors_.push_back(
        {image.head_.size() + entry.begin, image.head_.size() + entry.end, std::move(tensors[t].read)});
  }
  return image;
}

Status TensorImage::read(std::uint64_t offset, std::span<std::byte> to) const {
  TG_CHECK(offset + to.size() <= bytes(), offset, to.size());
  if (offset < head_.size()) {
    const std::size_t count = std::min<std::size_t>(to.size(), head_.size() - offset);
    std::memcpy(to.data(), head_.data() + offset, count);
    to = to.subspan(count);
    offset += count;
  }
  std::vector<float> buffer;
  auto tensor = std::upper_bound(tensors_.begin(), tensors_.end(), offset,
                                 [](std::uint64_t place, const Tensor& one) { return place < one.end; });
  while (!to.empty()) {
    // Reads whole elements around the requested bytes.
    const std::uint64_t within = offset - tensor->begin, first = within / sizeof(float);
    const std::uint64_t wanted = std::min<std::uint64_t>(to.size(), tensor->end - offset);
    const std::uint64_t last =
        std::min<std::uint64_t>((within + wanted + sizeof(float) - 1) / sizeof(float), first + kBufferElements);
    buffer.resize(last - first);
    if (Status status = tensor->read(first, buffer); !status) return status;
    const std::size_t skipped = within - first * sizeof(float);
    const std::size_t count = std::min<std::size_t>(wanted, buffer.size() * sizeof(float) - skipped);
    std::memcpy(to.data(), reinterpret_cast<const std::byte*>(buffer.data()) + skipped, count);
    to = to.subspan(count);
    offset += count;
    if (offset == tensor->end) ++tensor;
  }
  return {};
}

Status TensorImage::for_each_slice(std::uint64_t offset,
                                   const std::function<Status(std::span<const std::byte>)>& take) const {
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kBufferElements * sizeof(float), bytes() - offset));
  for (; offset < bytes(); offset += buffer.size()) {
    buffer.resize(std::min<std::uint64_t>(buffer.size(), bytes() - offset));
    if (Status status = read(offset, buffer); !status) return status;
    if (Status status = take(buffer); !status) return status;
  }
  return {};
}

Result<std::string> TensorImage::values_sha256() const {
  Sha256 hash;
  const Status read = for_each_slice(head_.size(), [&](std::span<const std::byte> bytes) -> Status {
    hash.add(bytes);
    return {};
  });
  if (!read) return read.error();
  return hash.hex();
}

}  // namespace tg::engine

#include "engine/storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/storage/atomic_file.h"
#include "engine/storage/safetensors_header.h"

namespace tg::engine {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);
constexpr std::size_t kAlignment = 8;  // bytes: the data part starts at a multiple of it
constexpr std::size_t kSizeBytes = 8;  // of the header's size in front of it
constexpr std::size_t kBufferElements = 256 * 1024;

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorKind::kCorrupt, path + " is damaged: " + what + "; fetch it again or use an older checkpoint"};
}

Error unwritable(const std::string& path, const std::string& what) {
  return {ErrorKind::kFailed, "cannot write " + path + ": " + what};
}

Result<TensorHeader> header_of(const std::string& path, std::span<const TensorSource> tensors) {
  TensorHeader header;
  std::uint64_t at = 0;
  for (const TensorSource& tensor : tensors) {
    if (tensor.shape.size() > kMostTensorDimensions)
      return unwritable(path, "tensor \"" + tensor.name + "\" has too many dimensions");
    std::uint64_t bytes = sizeof(float);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    header.tensors.push_back({tensor.name, tensor.shape, at, at + bytes});
    at += bytes;
  }
  return header;
}

Status write_tensor(AtomicFile& file, const TensorSource& tensor, std::size_t elements, std::span<float> buffer) {
  for (std::size_t first = 0; first < elements; first += buffer.size()) {
    const std::span<float> values = buffer.first(std::min(buffer.size(), elements - first));
    tensor.read(first, values);
    if (Status status = file.write(values.data(), values.size_bytes()); !status) return status;
  }
  return {};
}

// The file's size, with the stream left at its start; a directory or an unreadable file gives an error.
Result<std::uint64_t> open_file(const std::string& path, std::ifstream& file) {
  errno = 0;
  file.open(path, std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  file.seekg(0);
  if (!file || size < 0 || size == INT64_MAX) {
    const ErrorKind kind = errno == ENOENT ? ErrorKind::kNotFound : ErrorKind::kIo;
    return Error{kind, "cannot read " + path + (errno != 0 ? std::string(": ") + std::strerror(errno) : "")};
  }
  return static_cast<std::uint64_t>(size);
}

Result<LoadedTensors> read_tensors(const std::string& path, std::ifstream& file, std::uint64_t file_bytes) {
  std::uint64_t header_bytes = 0;
  if (file_bytes < kSizeBytes || !file.read(reinterpret_cast<char*>(&header_bytes), kSizeBytes)) {
    return damaged(path, "it is too short for a safetensors file");
  }
  if (header_bytes > kMostHeaderBytes || header_bytes > file_bytes - kSizeBytes) {
    return damaged(path, "its header would be " + std::to_string(header_bytes) + " bytes long");
  }
  std::string json(header_bytes, '\0');
  if (!file.read(json.data(), static_cast<std::streamsize>(header_bytes))) return damaged(path, "it is truncated");
  auto header = parse_tensor_header(json, file_bytes - kSizeBytes - header_bytes);
  if (!header) return damaged(path, header.error().message);

  LoadedTensors loaded;
  loaded.metadata = std::move(header->metadata);
  for (TensorEntry& tensor : header->tensors) {
    std::vector<float> values((tensor.end - tensor.begin) / sizeof(float));
    const auto bytes = static_cast<std::streamsize>(values.size() * sizeof(float));
    if (!file.read(reinterpret_cast<char*>(values.data()), bytes)) return damaged(path, "it is truncated");
    loaded.shapes.emplace(tensor.name, std::move(tensor.shape));
    loaded.values.emplace(std::move(tensor.name), std::move(values));
  }
  return loaded;
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                         const std::map<std::string, std::string>& metadata) {
  auto header = header_of(path, tensors);
  if (!header) return header.error();
  header->metadata = metadata;
  auto json = format_tensor_header(*header);
  if (!json) return unwritable(path, json.error().message);
  json->resize((json->size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t header_bytes = json->size();
  if (header_bytes > kMostHeaderBytes) return unwritable(path, "its header would be too large");

  AtomicFile file(path);
  if (Status status = file.open(); !status) return status;
  if (Status status = file.write(&header_bytes, kSizeBytes); !status) return status;
  if (Status status = file.write(json->data(), json->size()); !status) return status;
  std::vector<float> buffer(kBufferElements);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::size_t elements = (header->tensors[t].end - header->tensors[t].begin) / sizeof(float);
    if (Status status = write_tensor(file, tensors[t], elements, buffer); !status) return status;
  }
  return file.commit();
}

Result<LoadedTensors> read_safetensors(const std::string& path) {
  std::ifstream file;
  const auto file_bytes = open_file(path, file);
  if (!file_bytes) return file_bytes.error();
  try {
    return read_tensors(path, file, *file_bytes);
  } catch (const std::bad_alloc&) {
    return Error{ErrorKind::kFailed, "not enough memory to read " + path};
  }
}

std::vector<TensorSource> tensors_of(const SegmentTable& segments, const ReadFloats& read, const std::string& suffix) {
  std::vector<TensorSource> tensors;
  tensors.reserve(segments.size());
  for (const Segment& segment : segments.segments()) {
    tensors.push_back({segment.name + suffix, segment.shape,
                       [read, offset = segment.offset](std::size_t first, std::span<float> values) {
                         read(offset + first, values);
                       }});
  }
  return tensors;
}

Status write_file_atomically(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  if (Status status = file.open(); !status) return status;
  if (Status status = file.write(content.data(), content.size()); !status) return status;
  return file.commit();
}

}  // namespace tg::engine

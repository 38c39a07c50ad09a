#include "engine/storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/storage/atomic_file.h"
#include "engine/storage/safetensors_header.h"
#include "kernels/base/sha256.h"

namespace tg::engine {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);
constexpr std::size_t kSizeBytes = 8;  // bytes of the size field before the header
constexpr std::size_t kBufferBytes = 1024 * 1024;

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorKind::kCorrupt, path + " is damaged: " + what + "; fetch it again or use an older checkpoint"};
}

Error unwritable(const std::string& path, const std::string& what) {
  return {ErrorKind::kFailed, "cannot write " + path + ": " + what};
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

struct Opening {
  TensorHeader header;
  std::uint64_t values_at = 0;  // byte offset in the file
};

// Reads and checks the header.
Result<Opening> read_header(const std::string& path, std::ifstream& file, std::uint64_t file_bytes) {
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
  if (!header && header.error().kind != ErrorKind::kCorrupt)
    return Error{ErrorKind::kCorrupt, path + ": " + header.error().message};
  if (!header) return damaged(path, header.error().message);
  return Opening{*std::move(header), kSizeBytes + header_bytes};
}

Result<LoadedTensors> read_tensors(const std::string& path, std::ifstream& file, std::uint64_t file_bytes) {
  Result<Opening> opening = read_header(path, file, file_bytes);
  if (!opening) return opening.error();
  TensorHeader* const header = &opening->header;
  LoadedTensors loaded;
  loaded.metadata = std::move(header->metadata);
  for (TensorEntry& tensor : header->tensors) {
    std::vector<float> values((tensor.end - tensor.begin) / sizeof(float));
    const auto bytes = static_cast<std::streamsize>(values.size() * sizeof(float));
    file.seekg(static_cast<std::streamoff>(opening->values_at + tensor.begin));
    if (!file.read(reinterpret_cast<char*>(values.data()), bytes)) return damaged(path, "it is truncated");
    loaded.shapes.emplace(tensor.name, std::move(tensor.shape));
    loaded.values.emplace(std::move(tensor.name), std::move(values));
  }
  return loaded;
}

}  // namespace

Result<FileMark> write_image(const std::string& path, const TensorImage& image) {
  AtomicFile file(path);
  if (Status status = file.open(); !status) return status.error();
  Sha256 hash;
  const Status written = image.for_each_slice(0, [&](std::span<const std::byte> bytes) {
    hash.add(bytes);
    return file.write(bytes.data(), bytes.size());
  });
  if (!written) return written.error();
  if (Status status = file.commit(); !status) return status.error();
  return FileMark{image.bytes(), hash.hex()};
}

Status write_safetensors(const std::string& path, std::vector<TensorSource> tensors,
                         const std::map<std::string, std::string>& metadata) {
  const Result<TensorImage> image = TensorImage::of(std::move(tensors), metadata);
  if (!image) return unwritable(path, image.error().message);
  const Result<FileMark> written = write_image(path, *image);
  return written ? Status() : Status(written.error());
}

Result<FileMark> mark_of_file(const std::string& path) {
  std::ifstream file;
  const auto file_bytes = open_file(path, file);
  if (!file_bytes) return file_bytes.error();
  Sha256 hash;
  FileMark mark;
  std::vector<char> buffer(kBufferBytes);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
    hash.add(std::as_bytes(std::span(buffer).first(static_cast<std::size_t>(file.gcount()))));
    mark.bytes += static_cast<std::uint64_t>(file.gcount());
  }
  if (file.bad()) return Error{ErrorKind::kIo, "cannot read " + path};
  mark.sha256 = hash.hex();
  return mark;
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

Result<OpenTensors> open_safetensors(const std::string& path) {
  struct Shared {
    std::mutex mutex;
    std::ifstream file;
  };
  const auto shared = std::make_shared<Shared>();
  const auto file_bytes = open_file(path, shared->file);
  if (!file_bytes) return file_bytes.error();
  Result<Opening> opening = read_header(path, shared->file, *file_bytes);
  if (!opening) return opening.error();
  OpenTensors open;
  open.metadata = std::move(opening->header.metadata);
  for (TensorEntry& tensor : opening->header.tensors) {
    const std::uint64_t at = opening->values_at + tensor.begin;
    open.tensors.push_back({std::move(tensor.name), std::move(tensor.shape),
                            [shared, path, at](std::size_t first, std::span<float> values) -> Status {
                              const std::lock_guard lock(shared->mutex);
                              shared->file.clear();
                              shared->file.seekg(static_cast<std::streamoff>(at + first * sizeof(float)));
                              const auto bytes = static_cast<std::streamsize>(values.size_bytes());
                              if (shared->file.read(reinterpret_cast<char*>(values.data()), bytes)) return {};
                              return Error{ErrorKind::kIo, "cannot read " + path};
                            }});
  }
  return open;
}

std::vector<TensorSource> tensors_of(const SegmentTable& segments, const ReadFloats& read, const std::string& suffix) {
  std::vector<TensorSource> tensors;
  tensors.reserve(segments.size());
  for (const Segment& segment : segments.segments()) {
    tensors.push_back({segment.name + suffix, segment.shape,
                       [read, offset = segment.offset](std::size_t first, std::span<float> values) {
                         return read(offset + first, values);
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

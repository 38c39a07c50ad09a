#include "engine/storage/safetensors.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <string_view>
#include <utility>

#include "engine/storage/atomic_file.h"
#include "engine/storage/safetensors_header.h"
#include "engine/storage/sha256.h"
#include "kernels/base/regular_file.h"

namespace tg::engine {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);
constexpr std::size_t kSizeBytes = 8;  // bytes of the size field before the header
constexpr std::size_t kBufferBytes = 1024 * 1024;

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorKind::kCorrupt, path + " is damaged: " + what + "; fetch it again or use an older checkpoint"};
}

// What is often taken for a safetensors file.
struct Other {
  std::string_view begins, what;
};
constexpr Other kOthers[] = {{"PK\x03\x04", "a zip archive, as torch.save and numpy.savez write"},
                             {"\x80", "a pickle, as torch.save writes"},
                             {"\x89HDF", "an HDF5 file, as Keras writes"},
                             {"\x08", "an ONNX file, or another of protobuf"}};

Error unreadable(const std::string& path, const Error& cause) {
  return {cause.kind, "cannot read " + path + ": " + cause.message};
}

Result<RegularFile> open_file(const std::string& path) {
  Result<RegularFile> file = RegularFile::open(path);
  if (!file) return unreadable(path, file.error());
  return file;
}

// Reads all of `bytes` from there on.
Status read_whole(const RegularFile& file, const std::string& path, std::uint64_t at, std::span<std::byte> bytes) {
  const Result<std::size_t> got = file.read(at, bytes);
  if (!got) return unreadable(path, got.error());
  if (*got < bytes.size()) return damaged(path, "it is truncated");
  return {};
}

// No file of ours begins with a size that is out of bounds: it is damaged, or of another kind.
Error without_header(const std::string& path, const RegularFile& file, std::uint64_t header_bytes) {
  char start[kSizeBytes] = {};
  if (const auto got = file.read(0, std::as_writable_bytes(std::span(start))); !got)
    return unreadable(path, got.error());
  for (const Other& other : kOthers)
    if (std::string_view(start, sizeof start).starts_with(other.begins))
      return {ErrorKind::kInvalidJob, path + " is " + std::string(other.what) +
                                          ", and no safetensors file; write one with "
                                          "safetensors.torch.save_file(model.state_dict(), \"x.safetensors\")"};
  return damaged(
      path, "its header would be " + std::to_string(header_bytes) + " bytes long, if it is a safetensors file at all");
}

struct Opening {
  TensorHeader header;
  std::uint64_t values_at = 0;  // byte offset in the file
};

// Reads and checks the header.
Result<Opening> read_header(const std::string& path, const RegularFile& file) {
  std::uint64_t header_bytes = 0;
  if (file.bytes() < kSizeBytes) return damaged(path, "it is too short for a safetensors file");
  if (const Status read = read_whole(file, path, 0, std::as_writable_bytes(std::span(&header_bytes, 1))); !read)
    return read.error();
  if (header_bytes > kMaxHeaderBytes || header_bytes > file.bytes() - kSizeBytes)
    return without_header(path, file, header_bytes);
  std::string json(header_bytes, '\0');
  if (const Status read = read_whole(file, path, kSizeBytes, std::as_writable_bytes(std::span(json))); !read)
    return read.error();
  auto header = parse_tensor_header(json, file.bytes() - kSizeBytes - header_bytes);
  if (!header && header.error().kind != ErrorKind::kCorrupt)
    return Error{ErrorKind::kCorrupt, path + ": " + header.error().message};
  if (!header) return damaged(path, header.error().message);
  return Opening{*std::move(header), kSizeBytes + header_bytes};
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

Result<FileMark> mark_of_file(const std::string& path) {
  const Result<RegularFile> file = open_file(path);
  if (!file) return file.error();
  Sha256 hash;
  FileMark mark;
  std::vector<std::byte> buffer(kBufferBytes);
  while (true) {
    const Result<std::size_t> got = file->read(mark.bytes, buffer);
    if (!got) return unreadable(path, got.error());
    if (*got == 0) break;
    hash.add(std::span(buffer).first(*got));
    mark.bytes += *got;
  }
  mark.sha256 = hash.hex();
  return mark;
}

Result<OpenTensors> open_safetensors(const std::string& path) {
  Result<RegularFile> opened = open_file(path);
  if (!opened) return opened.error();
  const auto file = std::make_shared<const RegularFile>(*std::move(opened));
  Result<Opening> opening = read_header(path, *file);
  if (!opening) return opening.error();
  OpenTensors open;
  open.metadata = std::move(opening->header.metadata);
  for (TensorEntry& tensor : opening->header.tensors) {
    const std::uint64_t at = opening->values_at + tensor.begin;
    open.tensors.push_back(
        {std::move(tensor.name), std::move(tensor.shape), [file, path, at](std::size_t first, std::span<float> values) {
           return read_whole(*file, path, at + first * sizeof(float), std::as_writable_bytes(values));
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

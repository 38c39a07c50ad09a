#include "engine/data/files/array.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>
#include <tuple>

#include "engine/data/files/file_bytes.h"
#include "engine/data/limits.h"
#include "engine/resources/memory.h"

namespace tg::engine {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

std::string name_of(const ArrayHeader& header) {
  return (header.kind == 'u' ? "uint" : header.kind == 'i' ? "int" : "float") + std::to_string(8 * header.bytes);
}

Error damaged(const std::string& file, const std::string& what) {
  return {ErrorKind::kCorrupt, file + " " + what + "; fetch or write the file again"};
}

Error unusable(const std::string& file, const std::string& what) { return {ErrorKind::kInvalidJob, file + " " + what}; }

// Reads exactly `size` bytes.
Status take(const ReadNext& next, const Seen& seen, std::size_t size, const std::string& file,
            std::vector<std::uint8_t>& bytes) {
  if (Status read = next(size, bytes); !read) return read;
  seen(bytes);
  if (bytes.size() == size) return {};
  return damaged(file, "is truncated: it ends inside its header");
}

// What follows KEY in the dictionary; nothing unless the key is there once.
std::string_view value_of(std::string_view dictionary, std::string_view key) {
  const std::string quoted = "'" + std::string(key) + "':";
  const std::size_t at = dictionary.find(quoted);
  if (at == std::string_view::npos || dictionary.find(quoted, at + 1) != std::string_view::npos) return {};
  const std::size_t first = dictionary.find_first_not_of(' ', at + quoted.size());
  return first == std::string_view::npos ? std::string_view() : dictionary.substr(first);
}

// "(60000, 784), ...": false if it is no such tuple.
bool read_shape(std::string_view text, std::vector<std::uint64_t>& shape) {
  if (!text.starts_with('(')) return false;
  text.remove_prefix(1);
  while (!text.starts_with(')')) {
    std::uint64_t size = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (code != std::errc() || shape.size() >= kMaxArrayRank) return false;
    shape.push_back(size);
    const std::size_t next = text.find_first_not_of(", ", static_cast<std::size_t>(end - text.data()));
    if (next == std::string_view::npos) return false;
    text.remove_prefix(next);
  }
  return true;
}

Result<ArrayHeader> parse_dictionary(std::string_view text, const std::string& file) {
  ArrayHeader header;
  const std::string_view type = value_of(text, "descr"), fortran = value_of(text, "fortran_order");
  if (!type.starts_with('\'') || !(fortran.starts_with("True") || fortran.starts_with("False")) ||
      !read_shape(value_of(text, "shape"), header.shape))
    return unusable(file, "has a header that is not of one array of numbers, of " + std::to_string(kMaxArrayRank) +
                              " dimensions at most; write it with numpy.save");
  const std::string descr(type.substr(1, type.find('\'', 1) - 1));  // byte order, kind, bytes
  constexpr std::string_view kTypes[] = {"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"};
  if (descr.size() != 3 || std::string_view("<>|").find(descr[0]) == std::string_view::npos ||
      std::ranges::find(kTypes, descr.substr(1)) == std::end(kTypes)) {
    const bool printable = std::ranges::all_of(descr, [](char c) { return c >= ' ' && c <= '~'; });
    return unusable(file, "has elements of type " + (printable ? descr.substr(0, 40) : std::string("unknown")) +
                              "; save uint8 or float32 samples, and labels as int64 numbers of classes from 0 on");
  }
  if (fortran.starts_with("True")) return unusable(file, "is in Fortran order; save numpy.ascontiguousarray(x)");
  header.big_endian = descr[0] == '>';
  header.kind = descr[1];
  header.bytes = static_cast<std::size_t>(descr[2] - '0');
  return header;
}

Result<ArrayHeader> read_npy_header(const ReadNext& next, const Seen& seen, const std::string& file) {
  std::vector<std::uint8_t> bytes;
  if (const Status read = take(next, seen, 8, file, bytes); !read) return read.error();
  if (!std::equal(kNpyMagic.begin(), kNpyMagic.end(), bytes.begin(),
                  [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; }))
    return damaged(file, "does not begin as .npy files do");
  const int version = bytes[6];
  if (version < 1 || version > 3)
    return damaged(file, "is of version " + std::to_string(version) + " of .npy, not 1 to 3");
  const std::size_t size_bytes = version == 1 ? 2 : 4;
  if (const Status read = take(next, seen, size_bytes, file, bytes); !read) return read.error();
  std::size_t size = 0;
  for (std::size_t i = size_bytes; i > 0; --i) size = size << 8 | bytes[i - 1];
  if (size > kMaxNpyHeaderBytes)
    return damaged(
        file, "claims a header of " + std::to_string(size) + " bytes; at most " + std::to_string(kMaxNpyHeaderBytes));
  if (const Status read = take(next, seen, size, file, bytes); !read) return read.error();
  return parse_dictionary({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
}

Result<ArrayHeader> read_idx_header(const ReadNext& next, const Seen& seen, const std::string& file) {
  std::vector<std::uint8_t> bytes;
  if (const Status read = take(next, seen, 4, file, bytes); !read) return read.error();
  ArrayHeader header;
  header.big_endian = true;
  bool known = false;
  for (const auto& [type, kind, size] :
       {std::tuple{0x08, 'u', 1}, {0x09, 'i', 1}, {0x0b, 'i', 2}, {0x0c, 'i', 4}, {0x0d, 'f', 4}, {0x0e, 'f', 8}})
    if (bytes[2] == type) header.kind = kind, header.bytes = static_cast<std::size_t>(size), known = true;
  const std::size_t rank = bytes[3];
  if (bytes[0] != 0 || bytes[1] != 0 || !known || rank == 0 || rank > kMaxArrayRank)
    return damaged(file, "does not begin as IDX files do: two zeros, a type, 1 to " + std::to_string(kMaxArrayRank) +
                             " dimensions");
  if (const Status read = take(next, seen, 4 * rank, file, bytes); !read) return read.error();
  for (std::size_t i = 0; i < 4 * rank; i += 4)
    header.shape.push_back(std::uint64_t{bytes[i]} << 24 | std::uint64_t{bytes[i + 1]} << 16 |
                           std::uint64_t{bytes[i + 2]} << 8 | bytes[i + 3]);
  return header;
}

// The bits of the element at a place.
std::uint64_t bits_at(const ArrayHeader& header, const std::uint8_t* at) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < header.bytes; ++i)
    bits |= std::uint64_t{at[header.big_endian ? header.bytes - 1 - i : i]} << 8 * i;
  return bits;
}

// Calls piece(bytes, first element) until all promised data has been read.
Status read_data(const ArrayHeader& header, const ReadNext& next, const Seen& seen, const std::string& file,
                 const std::function<Status(std::span<const std::uint8_t>, std::uint64_t)>& piece) {
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t done = 0; done < header.data_bytes();) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kArrayPieceBytes, header.data_bytes() - done));
    if (Status read = next(wanted, bytes); !read) return read;
    if (bytes.size() < wanted)
      return damaged(file, "is truncated: its header promises " + std::to_string(header.data_bytes()) +
                               " bytes of data and " + std::to_string(done + bytes.size()) + " follow");
    seen(bytes);
    if (Status status = piece(bytes, done / header.bytes); !status) return status;
    done += wanted;
  }
  if (Status read = next(1, bytes); !read) return read;
  if (!bytes.empty())
    return damaged(file, "is too long: its header promises " + std::to_string(header.data_bytes()) +
                             " bytes of data and more follow");
  return {};
}

// Checks that the promised samples fit into memory: a header can claim anything.
Status check_room(std::uint64_t bytes, const std::string& file) {
  const std::uint64_t room = available_memory();
  if (bytes <= room) return {};
  return unusable(file, "promises " + std::to_string(bytes >> 20) + " MiB of samples and this machine has " +
                            std::to_string(room >> 20) + " MiB left; free some or choose a smaller set");
}

Status add_floats(const ArrayHeader& header, std::span<const std::uint8_t> bytes, std::uint64_t first,
                  const std::string& file, std::vector<float>& floats) {
  for (std::size_t i = 0; i < bytes.size(); i += header.bytes) {
    const std::uint64_t bits = bits_at(header, bytes.data() + i);
    const float value = header.bytes == sizeof(float) ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                                                      : static_cast<float>(std::bit_cast<double>(bits));
    if (!std::isfinite(value))
      return unusable(file, "has a value in sample " +
                                std::to_string((first + i / header.bytes) / header.sample_elements) +
                                " that is not a finite float32; remove the sample or correct it");
    floats.push_back(value);
  }
  return {};
}

// The element as a signed number; one outside its range only has to be recognizable as not a label.
std::int64_t whole_at(const ArrayHeader& header, const std::uint8_t* at) {
  const std::uint64_t bits = bits_at(header, at);
  if (header.kind == 'u') return static_cast<std::int64_t>(std::min<std::uint64_t>(bits, INT64_MAX));
  const std::size_t unused = 64 - 8 * header.bytes;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace

ReadNext reader_of(DataFile& file) {
  return [&file](std::size_t most, std::vector<std::uint8_t>& bytes) {
    bytes.clear();
    return file.read_up_to(most, bytes);
  };
}

Result<ArrayHeader> read_array_header(ArrayFormat format, const ReadNext& next, const Seen& seen,
                                      const std::string& file) {
  Result<ArrayHeader> header =
      format == ArrayFormat::kNpy ? read_npy_header(next, seen, file) : read_idx_header(next, seen, file);
  if (!header) return header;
  if (header->shape.empty()) return unusable(file, "holds a single number, no samples");
  if (header->shape[0] == 0) return damaged(file, "holds no samples");
  if (header->shape[0] > kMaxSamples)
    return damaged(file,
                   "claims " + std::to_string(header->shape[0]) + " samples; at most " + std::to_string(kMaxSamples));
  for (std::size_t i = 1; i < header->shape.size(); ++i) {
    if (header->shape[i] == 0 || header->shape[i] > kMaxSampleElements / header->sample_elements)
      return damaged(file, "claims samples of 0 or of more than " + std::to_string(kMaxSampleElements) + " elements");
    header->sample_elements *= header->shape[i];
  }
  if (header->data_bytes() > kMaxArrayBytes)
    return damaged(file, "claims " + std::to_string(header->data_bytes()) + " bytes of data, more than the " +
                             std::to_string(kMaxArrayBytes) + " that an array may have");
  return header;
}

Result<SampleArray> read_samples(ArrayFormat format, const ReadNext& next, const Seen& seen, const std::string& file) {
  const Result<ArrayHeader> read = read_array_header(format, next, seen, file);
  if (!read) return read.error();
  const ArrayHeader& header = *read;
  const bool bytes = header.kind == 'u' && header.bytes == 1;
  if (!bytes && header.kind != 'f')
    return unusable(file, "has " + name_of(header) + " samples; save them as uint8 or float32 (x.astype('float32'))");
  SampleArray array;
  array.shape = header.shape;
  const std::uint64_t elements = header.shape[0] * header.sample_elements;
  if (Status room = check_room(elements * (bytes ? 1 : sizeof(float)), file); !room) return room.error();
  const Status data =
      read_data(header, next, seen, file, [&](std::span<const std::uint8_t> piece, std::uint64_t first) {
        // Only once the file has turned out to have a first piece; memory is used only when written to.
        if (first == 0 && bytes) array.bytes.reserve(elements);
        if (first == 0 && !bytes) array.floats.reserve(elements);
        if (!bytes) return add_floats(header, piece, first, file, array.floats);
        array.bytes.insert(array.bytes.end(), piece.begin(), piece.end());
        return Status();
      });
  if (!data) return data.error();
  return array;
}

Result<std::vector<std::uint16_t>> read_labels(ArrayFormat format, const ReadNext& next, const Seen& seen,
                                               const std::string& file) {
  const Result<ArrayHeader> read = read_array_header(format, next, seen, file);
  if (!read) return read.error();
  const ArrayHeader& header = *read;
  if (header.sample_elements != 1)
    return unusable(file, "has " + std::to_string(header.sample_elements) +
                              " numbers per sample where a label is one: the number of its class; if they are one-hot, "
                              "save y.argmax(axis=1)");
  if (header.kind == 'f') return unusable(file, "has " + name_of(header) + " labels; save them as y.astype('int64')");
  std::vector<std::uint16_t> labels;
  const Status data =
      read_data(header, next, seen, file, [&](std::span<const std::uint8_t> piece, std::uint64_t first) {
        for (std::size_t i = 0; i < piece.size(); i += header.bytes) {
          const std::int64_t label = whole_at(header, piece.data() + i);
          if (label < 0 || label >= static_cast<std::int64_t>(kMaxClasses))
            return Status(unusable(file, "has label " + std::to_string(label) + " of sample " +
                                             std::to_string(first + i / header.bytes) + ", outside 0 to " +
                                             std::to_string(kMaxClasses - 1)));
          labels.push_back(static_cast<std::uint16_t>(label));
        }
        return Status();
      });
  if (!data) return data.error();
  return labels;
}

}  // namespace tg::engine

#include "engine/data/files/array.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/data/limits.h"
#include "engine/resources/memory.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

struct ElementWord {
  Element element;
  const char* npy;   // numpy's type code without byte order
  std::uint8_t idx;  // IDX's type code; 0 = none
  const char* name;
};
constexpr ElementWord kElements[] = {
    {Element::kUint8, "u1", 0x08, "uint8"},     {Element::kInt8, "i1", 0x09, "int8"},
    {Element::kUint16, "u2", 0, "uint16"},      {Element::kInt16, "i2", 0x0b, "int16"},
    {Element::kUint32, "u4", 0, "uint32"},      {Element::kInt32, "i4", 0x0c, "int32"},
    {Element::kUint64, "u8", 0, "uint64"},      {Element::kInt64, "i8", 0, "int64"},
    {Element::kFloat32, "f4", 0x0d, "float32"}, {Element::kFloat64, "f8", 0x0e, "float64"}};

const char* name_of(Element element) { return kElements[static_cast<std::size_t>(element)].name; }

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

// Parses the header's dictionary, piece by piece. Anything unknown is an error: the writer is a program.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : text_(text) {}

  // False if it does not have the form that numpy writes.
  bool read(std::string& descr, bool& fortran, std::vector<std::uint64_t>& shape) {
    if (!skip('{')) return false;
    bool seen[3] = {};
    while (!skip('}')) {
      const std::optional<std::string_view> key = quoted();
      if (!key || !skip(':')) return false;
      const std::size_t at = *key == "descr" ? 0 : *key == "fortran_order" ? 1 : *key == "shape" ? 2 : 3;
      if (at == 3 || seen[at]) return false;
      seen[at] = true;
      if (at == 0) {
        const auto word = quoted();
        if (!word) return false;
        descr = *word;
      } else if (at == 1) {
        fortran = skip("True");
        if (!fortran && !skip("False")) return false;
      } else if (!tuple(shape)) {
        return false;
      }
      if (!skip(',') && !follows('}')) return false;
    }
    blank();
    return text_.empty() && seen[0] && seen[1] && seen[2];
  }

 private:
  void blank() {
    const std::size_t first = text_.find_first_not_of(" \n");
    text_.remove_prefix(first == std::string_view::npos ? text_.size() : first);
  }
  bool follows(char wanted) {
    blank();
    return text_.starts_with(wanted);
  }
  bool skip(char wanted) { return skip(std::string_view(&wanted, 1)); }
  bool skip(std::string_view wanted) {
    blank();
    if (!text_.starts_with(wanted)) return false;
    text_.remove_prefix(wanted.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    blank();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return word;
  }
  bool tuple(std::vector<std::uint64_t>& shape) {
    if (!skip('(')) return false;
    while (!skip(')')) {
      blank();
      std::uint64_t size = 0;
      const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), size);
      if (code != std::errc() || shape.size() >= kMaxArrayRank) return false;
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      shape.push_back(size);
      if (!skip(',') && !follows(')')) return false;
    }
    return true;
  }

  std::string_view text_;
};

Result<ArrayHeader> parse_dictionary(std::string_view text, const std::string& file) {
  ArrayHeader header;
  std::string descr;
  bool fortran = false;
  if (!Dictionary(text).read(descr, fortran, header.shape))
    return unusable(file, "has a header that is not of one array of numbers, of " + std::to_string(kMaxArrayRank) +
                              " dimensions at most; write it with numpy.save");
  const auto found = std::ranges::find_if(
      kElements, [&](const ElementWord& word) { return descr.size() == 3 && descr.substr(1) == word.npy; });
  const bool ordered = descr.starts_with('<') || descr.starts_with('|') || descr.starts_with('>');
  if (found == std::end(kElements) || !ordered) {
    const bool printable = std::ranges::all_of(descr, [](char c) { return c >= ' ' && c <= '~'; });
    return unusable(file, "has elements of type " + (printable ? descr.substr(0, 40) : std::string("unknown")) +
                              "; save uint8 or float32 samples, and labels as int64 numbers of classes from 0 on");
  }
  if (fortran) return unusable(file, "is in Fortran order; save numpy.ascontiguousarray(x)");
  header.element = found->element;
  header.big_endian = descr[0] == '>';
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
  const auto found =
      std::ranges::find_if(kElements, [&](const ElementWord& word) { return bytes[2] != 0 && bytes[2] == word.idx; });
  const std::size_t rank = bytes[3];
  if (bytes[0] != 0 || bytes[1] != 0 || found == std::end(kElements) || rank == 0 || rank > kMaxArrayRank)
    return damaged(file, "does not begin as IDX files do: two zeros, a type, 1 to " + std::to_string(kMaxArrayRank) +
                             " dimensions");
  if (const Status read = take(next, seen, 4 * rank, file, bytes); !read) return read.error();
  ArrayHeader header;
  header.element = found->element;
  header.big_endian = true;
  for (std::size_t i = 0; i < 4 * rank; i += 4)
    header.shape.push_back(std::uint64_t{bytes[i]} << 24 | std::uint64_t{bytes[i + 1]} << 16 |
                           std::uint64_t{bytes[i + 2]} << 8 | bytes[i + 3]);
  return header;
}

template <class Value>
Value value_at(const std::uint8_t* at, bool big_endian) {
  std::uint8_t bytes[sizeof(Value)];
  std::memcpy(bytes, at, sizeof bytes);
  static_assert(std::endian::native == std::endian::little);
  if (big_endian) std::reverse(std::begin(bytes), std::end(bytes));
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Calls piece(bytes, first element) until all promised data has been read.
Status read_data(const ArrayHeader& header, const ReadNext& next, const Seen& seen, const std::string& file,
                 const std::function<Status(std::span<const std::uint8_t>, std::uint64_t)>& piece) {
  const std::size_t element_bytes = bytes_of(header.element);
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t done = 0; done < header.data_bytes();) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kArrayPieceBytes, header.data_bytes() - done));
    if (Status read = next(wanted, bytes); !read) return read;
    if (bytes.size() < wanted)
      return damaged(file, "is truncated: its header promises " + std::to_string(header.data_bytes()) +
                               " bytes of data and " + std::to_string(done + bytes.size()) + " follow");
    seen(bytes);
    if (Status status = piece(bytes, done / element_bytes); !status) return status;
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

template <class Value>
Status add_floats(const ArrayHeader& header, std::span<const std::uint8_t> bytes, std::uint64_t first,
                  const std::string& file, std::vector<float>& floats) {
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(Value)) {
    const auto value = static_cast<float>(value_at<Value>(bytes.data() + i, header.big_endian));
    if (!std::isfinite(value))
      return unusable(file, "has a value in sample " +
                                std::to_string((first + i / sizeof(Value)) / header.sample_elements) +
                                " that is not a finite float32; remove the sample or correct it");
    floats.push_back(value);
  }
  return {};
}

// The element as a signed number; one outside its range only has to be recognizable as not a label.
std::int64_t whole_at(Element element, const std::uint8_t* at, bool big) {
  switch (element) {
    case Element::kUint8:
      return *at;
    case Element::kInt8:
      return value_at<std::int8_t>(at, big);
    case Element::kUint16:
      return value_at<std::uint16_t>(at, big);
    case Element::kInt16:
      return value_at<std::int16_t>(at, big);
    case Element::kUint32:
      return value_at<std::uint32_t>(at, big);
    case Element::kInt32:
      return value_at<std::int32_t>(at, big);
    case Element::kUint64:
      return static_cast<std::int64_t>(std::min<std::uint64_t>(value_at<std::uint64_t>(at, big), INT64_MAX));
    case Element::kInt64:
      return value_at<std::int64_t>(at, big);
    case Element::kFloat32:
    case Element::kFloat64:
      break;
  }
  TG_CHECK(false, static_cast<int>(element));
}

}  // namespace

std::size_t bytes_of(Element element) {
  constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return kBytes[static_cast<std::size_t>(element)];
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
  const bool bytes = header.element == Element::kUint8;
  if (!bytes && header.element != Element::kFloat32 && header.element != Element::kFloat64)
    return unusable(file, std::string("has ") + name_of(header.element) +
                              " samples; save them as uint8 or float32 (x.astype('float32'))");
  SampleArray array;
  array.shape = header.shape;
  const std::uint64_t elements = header.shape[0] * header.sample_elements;
  if (Status room = check_room(elements * (bytes ? 1 : sizeof(float)), file); !room) return room.error();
  const Status data =
      read_data(header, next, seen, file, [&](std::span<const std::uint8_t> piece, std::uint64_t first) {
        // Only once the file has turned out to have a first piece; memory is used only when written to.
        if (first == 0 && bytes) array.bytes.reserve(elements);
        if (first == 0 && !bytes) array.floats.reserve(elements);
        if (header.element == Element::kFloat32) return add_floats<float>(header, piece, first, file, array.floats);
        if (header.element == Element::kFloat64) return add_floats<double>(header, piece, first, file, array.floats);
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
  if (header.element == Element::kFloat32 || header.element == Element::kFloat64)
    return unusable(file, std::string("has ") + name_of(header.element) + " labels; save them as y.astype('int64')");
  std::vector<std::uint16_t> labels;
  const Status data =
      read_data(header, next, seen, file, [&](std::span<const std::uint8_t> piece, std::uint64_t first) {
        const std::size_t size = bytes_of(header.element);
        for (std::size_t i = 0; i < piece.size(); i += size) {
          const std::int64_t label = whole_at(header.element, piece.data() + i, header.big_endian);
          if (label < 0 || label >= static_cast<std::int64_t>(kMaxClasses))
            return Status(unusable(file, "has label " + std::to_string(label) + " of sample " +
                                             std::to_string(first + i / size) + ", outside 0 to " +
                                             std::to_string(kMaxClasses - 1)));
          labels.push_back(static_cast<std::uint16_t>(label));
        }
        return Status();
      });
  if (!data) return data.error();
  return labels;
}

}  // namespace tg::engine

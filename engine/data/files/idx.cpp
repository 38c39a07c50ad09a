#include "engine/data/files/idx.h"

#include <algorithm>
#include <cstdio>

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"

namespace tg::engine {
namespace {

constexpr std::uint8_t kUnsignedByte = 0x08;
constexpr int kMnistClasses = 10;

std::uint32_t big_endian(std::span<const std::uint8_t> bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

Error damaged_idx(const std::string& file, const std::string& what) {
  return {ErrorKind::kCorrupt, file + " " + what + "; fetch the file again"};
}

constexpr std::size_t header_bytes(std::uint8_t rank) { return 4 + std::size_t{4} * rank; }

// The bytes of data promised by a header of `rank` sizes.
Result<std::uint64_t> promised_bytes(std::span<const std::uint8_t> bytes, std::uint8_t rank, const std::string& file) {
  if (bytes.size() < header_bytes(rank)) {
    return damaged_idx(file, "is truncated: " + std::to_string(bytes.size()) + " bytes do not hold an IDX header of " +
                                 std::to_string(header_bytes(rank)));
  }
  if (bytes[0] != 0 || bytes[1] != 0 || bytes[2] != kUnsignedByte || bytes[3] != rank) {
    char text[96];
    std::snprintf(text, sizeof text, "begins with %02x%02x%02x%02x where an IDX file of its kind has 000008%02x",
                  bytes[0], bytes[1], bytes[2], bytes[3], rank);
    return damaged_idx(file, text);
  }
  if (big_endian(bytes, 4) == 0) return damaged_idx(file, "holds no samples");
  std::uint64_t promised = 1;
  for (std::uint8_t i = 0; i < rank; ++i) {
    const std::uint32_t size = big_endian(bytes, 4 + std::size_t{4} * i);
    if (i > 0 && (size == 0 || size > kMaxIdxSide)) {
      return damaged_idx(file, "claims images with a side of " + std::to_string(size) + " pixels, outside 1 to " +
                                   std::to_string(kMaxIdxSide));
    }
    promised *= size;  // below 2^32 * 2^10 * 2^10
  }
  return promised;
}

// The data after a header of `rank` sizes; checks magic and length.
Result<std::span<const std::uint8_t>> idx_data(std::span<const std::uint8_t> bytes, std::uint8_t rank,
                                               const std::string& file) {
  const Result<std::uint64_t> promised = promised_bytes(bytes, rank, file);
  if (!promised) return promised.error();
  const std::uint64_t present = bytes.size() - header_bytes(rank);
  if (present < *promised) {
    return damaged_idx(file, "is truncated: its header promises " + std::to_string(*promised) + " bytes of data and " +
                                 std::to_string(present) + " follow");
  }
  if (present > *promised)
    return damaged_idx(
        file, "is too long: its header promises " + std::to_string(*promised) + " bytes of data and more follow");
  return bytes.subspan(header_bytes(rank));
}

// Reads as much of the file as its header promises, and one more byte if there is one, so that the parser can report
// a file that is too long.
Result<std::vector<std::uint8_t>> read_idx(const std::string& path, std::uint8_t rank) {
  Result<DataFile> file = DataFile::open(path);
  if (!file) return file.error();
  std::vector<std::uint8_t> bytes;
  if (Status read = file->read_up_to(header_bytes(rank), bytes); !read) return read.error();
  const Result<std::uint64_t> promised = promised_bytes(bytes, rank, path);
  if (!promised) return promised.error();
  if (*promised > kMaxDataFileBytes)
    return damaged_idx(path, "claims " + std::to_string(*promised) + " bytes of data, more than the " +
                                 std::to_string(kMaxDataFileBytes) + " that a data file may have");
  if (Status read = file->read_up_to(header_bytes(rank) + *promised + 1, bytes); !read) return read.error();
  return bytes;
}

// MNIST, or a set with the same files.
struct MnistSet {
  DatasetKind kind;
  const char* name;
  std::string directory, folder;  // the files are in the directory or in its folder of this name
};

// The accepted spellings of a file's name.
std::vector<std::string> spellings(const std::string& part, std::uint8_t rank) {
  const std::string kind = "idx" + std::to_string(rank) + "-ubyte";
  const std::string dashed = part + "-" + kind;
  const std::string dotted = part + "." + kind;
  return {dashed, dotted, dashed + ".gz", dotted + ".gz"};
}

Result<std::vector<std::uint8_t>> read_part(const MnistSet& place, const std::string& part, std::uint8_t rank,
                                            std::string& path) {
  const std::vector<std::string> names = spellings(part, rank);
  path = find_file(place.directory, place.folder, names);
  if (path.empty()) {
    return Error{ErrorKind::kInvalidJob,
                 "data-dir " + place.directory + " has no " + names.front() + "[.gz], nor has " + place.directory +
                     "/" + place.folder + "; put the four files of " + place.name + " there, or use data = synthetic"};
  }
  return read_idx(path, rank);
}

Result<ImageSet> read_set(const MnistSet& place, const std::string& prefix, ContentHash& hash, NamedSums& sums) {
  std::string image_path, label_path;
  const auto image_bytes = read_part(place, prefix + "-images", 3, image_path);
  if (!image_bytes) return image_bytes.error();
  const auto label_bytes = read_part(place, prefix + "-labels", 1, label_path);
  if (!label_bytes) return label_bytes.error();
  auto set = parse_idx_images(*image_bytes, image_path);
  if (!set) return set;
  auto labels = parse_idx_labels(*label_bytes, kMnistClasses, label_path);
  if (!labels) return labels.error();
  const std::size_t images = set->pixels.size() / set->stored.elements();
  if (images != labels->size()) {
    return Error{ErrorKind::kCorrupt, image_path + " has " + std::to_string(images) + " images and " + label_path +
                                          " has " + std::to_string(labels->size()) +
                                          " labels; take both files from the same source"};
  }
  set->labels = *std::move(labels);
  hash.add(*image_bytes);
  hash.add(*label_bytes);
  sums.add(prefix + "-images", *image_bytes);
  sums.add(prefix + "-labels", *label_bytes);
  return set;
}

Result<Dataset> load(const MnistSet& place, std::vector<std::string> classes) {
  if (Status status = check_directory(place.directory, place.kind, std::string("the four files of ") + place.name);
      !status)
    return status.error();
  ContentHash hash;
  NamedSums sums;
  auto train = read_set(place, "train", hash, sums);
  if (!train) return train.error();
  auto test = read_set(place, "t10k", hash, sums);
  if (!test) return test.error();
  if (train->stored != test->stored) {
    return Error{ErrorKind::kCorrupt, "the training and test images in " + place.directory +
                                          " differ in size; take all four files from the same source"};
  }
  Dataset data;
  data.kind = place.kind;
  data.train = *std::move(train);
  data.test = *std::move(test);
  data.classes = std::move(classes);
  data.hash = hash.value();
  data.files = sums.sums();
  data.file_names = sums.names();
  return data;
}

}  // namespace

Result<ImageSet> parse_idx_images(std::span<const std::uint8_t> bytes, const std::string& file) {
  const auto data = idx_data(bytes, 3, file);
  if (!data) return data.error();
  ImageSet set;
  set.stored = {1, static_cast<int>(big_endian(bytes, 8)), static_cast<int>(big_endian(bytes, 12))};
  set.pixels.assign(data->begin(), data->end());
  return set;
}

Result<std::vector<std::uint16_t>> parse_idx_labels(std::span<const std::uint8_t> bytes, int classes,
                                                    const std::string& file) {
  const auto data = idx_data(bytes, 1, file);
  if (!data) return data.error();
  const int most = *std::max_element(data->begin(), data->end());
  if (most >= classes) {
    // The file is undamaged, but it is another set, such as EMNIST's letters.
    return Error{ErrorKind::kInvalidJob, file + " has labels up to " + std::to_string(most) + ", but MNIST has " +
                                             std::to_string(classes) + " classes, labelled 0 to " +
                                             std::to_string(classes - 1) +
                                             ": is it another set, such as EMNIST? Set data = idx, which takes any "
                                             "number of classes, or put the four files of MNIST there"};
  }
  return std::vector<std::uint16_t>(data->begin(), data->end());
}

Result<Dataset> load_mnist(const std::string& directory) {
  return load({DatasetKind::kMnist, "MNIST", directory, "mnist"}, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

Result<Dataset> load_fashion_mnist(const std::string& directory) {
  // The four files have the same names as MNIST's, so a folder of their own comes first.
  const std::string folder = "fashion-mnist", own = directory + "/" + folder;
  const auto holds = [](const std::string& one) { return !find_file(one, "", spellings("train-images", 3)).empty(); };
  std::string place = directory;
  if (!directory.empty() && holds(own))
    place = own;
  else if (holds(kInstalledFashionMnist))
    place = kInstalledFashionMnist;
  if (place.empty()) {
    return Error{ErrorKind::kInvalidJob,
                 "data = fashion-mnist is not installed on this machine: apt-get install dataset-fashion-mnist, or set "
                 "data-dir to the directory that holds its four files"};
  }
  return load(
      {DatasetKind::kFashionMnist, "Fashion-MNIST", place, folder},
      {"t-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"});
}

}  // namespace tg::engine

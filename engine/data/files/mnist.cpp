#include "engine/data/files/mnist.h"

#include <algorithm>

#include "engine/data/content_hash.h"
#include "engine/data/files/array.h"
#include "engine/data/files/file_bytes.h"

namespace tg::engine {
namespace {

constexpr int kMnistClasses = 10;

// One of the four files: where it is, and its content.
struct File {
  std::string path;
  std::vector<std::uint8_t> bytes;
};

// Finds a file under one of its spellings and reads it by read(ArrayFormat, next, seen, path).
template <class Read>
auto read_part(const std::string& directory, const std::string& part, const char* kind, File& into, const Read& read)
    -> decltype(read(ArrayFormat::kIdx, ReadNext(), Seen(), into.path)) {
  const std::string dashed = part + "-" + kind, dotted = part + "." + kind;
  into.path = find_file(directory, "mnist", {dashed, dotted, dashed + ".gz", dotted + ".gz"});
  if (into.path.empty())
    return Error{ErrorKind::kInvalidJob, "data-dir " + directory + " has no " + dashed + "[.gz], nor has " + directory +
                                             "/mnist; put the four files of MNIST there, or use data = synthetic"};
  Result<DataFile> file = DataFile::open(into.path);
  if (!file) return file.error();
  // The hash is over whole files, so their bytes are kept.
  const Seen seen = [&](std::span<const std::uint8_t> bytes) {
    into.bytes.insert(into.bytes.end(), bytes.begin(), bytes.end());
  };
  return read(ArrayFormat::kIdx, reader_of(*file), seen, into.path);
}

Result<ImageSet> read_set(const std::string& directory, const std::string& prefix, ContentHash& hash, NamedSums& sums) {
  File image_file, label_file;
  Result<SampleArray> images = read_part(directory, prefix + "-images", "idx3-ubyte", image_file, read_samples);
  if (!images) return images.error();
  Result<std::vector<std::uint16_t>> labels =
      read_part(directory, prefix + "-labels", "idx1-ubyte", label_file, read_labels);
  if (!labels) return labels.error();
  if (images->shape.size() != 3 || !images->floats.empty())
    return Error{ErrorKind::kCorrupt, image_file.path +
                                          " does not hold grey pictures of a byte per pixel; fetch the "
                                          "file again"};
  if (images->shape[0] != labels->size())
    return Error{ErrorKind::kCorrupt, image_file.path + " has " + std::to_string(images->shape[0]) + " images and " +
                                          label_file.path + " has " + std::to_string(labels->size()) +
                                          " labels; take both files from the same source"};
  // The file is undamaged, but it is another set, such as EMNIST's letters.
  if (const int most = *std::ranges::max_element(*labels); most >= kMnistClasses)
    return Error{ErrorKind::kInvalidJob, label_file.path + " has labels up to " + std::to_string(most) +
                                             ", but MNIST has 10 classes, labelled 0 to 9: is it another set, such as "
                                             "EMNIST? Set data = idx, which takes any number of classes, or put the "
                                             "four files of MNIST there"};
  hash.add(image_file.bytes);
  hash.add(label_file.bytes);
  sums.add(prefix + "-images", image_file.bytes);
  sums.add(prefix + "-labels", label_file.bytes);
  ImageSet set;
  set.stored = {1, static_cast<int>(images->shape[1]), static_cast<int>(images->shape[2])};
  set.pixels = std::move(images->bytes);
  set.labels = *std::move(labels);
  return set;
}

}  // namespace

Result<Dataset> load_mnist(const std::string& directory) {
  if (const Status status = check_directory(directory, DatasetKind::kMnist, "the four files of MNIST"); !status)
    return status.error();
  ContentHash hash;
  NamedSums sums;
  auto train = read_set(directory, "train", hash, sums);
  if (!train) return train.error();
  auto test = read_set(directory, "t10k", hash, sums);
  if (!test) return test.error();
  if (train->stored != test->stored)
    return Error{ErrorKind::kCorrupt, "the training and test images in " + directory +
                                          " differ in size; take all four files from the same source"};
  Dataset data;
  data.kind = DatasetKind::kMnist;
  data.train = *std::move(train);
  data.test = *std::move(test);
  data.classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  data.hash = hash.value();
  data.files = sums.sums();
  data.file_names = sums.names();
  return data;
}

}  // namespace tg::engine

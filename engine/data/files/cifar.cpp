#include "engine/data/files/cifar.h"

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"

namespace tg::engine {
namespace {

constexpr std::size_t kMaxRecords = 100'000;  // records of a file; CIFAR-100 has 50,000 in one

// The place of one set's files.
struct Place {
  const CifarFormat& format;
  const std::string& directory;
  const char* folder;
};

Status read_batch(const Place& place, const std::string& name, ImageSet& set, ContentHash& hash, NamedSums& sums) {
  const std::string path = find_file(place.directory, place.folder, {name});
  const std::string set_name = place.format.name;
  if (path.empty()) {
    return Error{ErrorKind::kInvalidJob, "data-dir " + place.directory + " has no " + name + ", nor has " +
                                             place.directory + "/" + place.folder + "; unpack the binary version of " +
                                             set_name + " there"};
  }
  Result<DataFile> file = DataFile::open(path);
  if (!file) return file.error();
  std::vector<std::uint8_t> bytes;
  const std::size_t most = kMaxRecords * place.format.record_bytes();
  if (Status read = file->read_up_to(most + 1, bytes); !read) return read;
  if (bytes.size() > most) {
    return Error{ErrorKind::kCorrupt, path + " holds more than " + std::to_string(most) +
                                          " bytes, so it is not a batch of " + set_name +
                                          "; fetch the binary version of " + set_name + " again"};
  }
  hash.add(bytes);
  sums.add(name, bytes);
  return parse_cifar_batch(bytes, place.format, path, set);
}

}  // namespace

Status parse_cifar_batch(std::span<const std::uint8_t> bytes, const CifarFormat& format, const std::string& file,
                         ImageSet& set) {
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorKind::kCorrupt, file + " " + what + "; fetch the binary version of " + format.name + " again"};
  };
  const std::size_t record_bytes = format.record_bytes();
  if (bytes.empty()) return damaged("is empty");
  if (bytes.size() % record_bytes != 0) {
    return damaged("has " + std::to_string(bytes.size()) + " bytes, which is not a whole number of records of " +
                   std::to_string(record_bytes) + " (truncated, or another format)");
  }
  const std::size_t records = bytes.size() / record_bytes;
  const auto label_of = [&](std::size_t i) { return bytes[i * record_bytes + format.label_bytes - 1]; };
  for (std::size_t i = 0; i < records; ++i) {
    if (label_of(i) >= format.classes) {
      return damaged("has label " + std::to_string(label_of(i)) + " in record " + std::to_string(i) +
                     ", outside 0 to " + std::to_string(format.classes - 1));
    }
  }
  set.stored = {3, 32, 32};
  set.labels.reserve(set.labels.size() + records);
  set.pixels.reserve(set.pixels.size() + records * set.stored.elements());
  for (std::size_t i = 0; i < records; ++i) {
    const auto record = bytes.subspan(i * record_bytes, record_bytes);
    set.labels.push_back(label_of(i));
    set.pixels.insert(set.pixels.end(), record.begin() + static_cast<std::ptrdiff_t>(format.label_bytes), record.end());
  }
  return {};
}

Result<Dataset> load_cifar(DatasetKind kind, const std::string& directory) {
  const bool ten = kind == DatasetKind::kCifar10;
  const Place place = ten ? Place{kCifar10Format, directory, "cifar-10-batches-bin"}
                          : Place{kCifar100Format, directory, "cifar-100-binary"};
  const std::string batches = "the binary batches of " + std::string(place.format.name);
  if (Status status = check_directory(directory, kind, batches); !status) return status.error();
  std::vector<std::string> train{"train.bin"};
  if (ten) train = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
  Dataset data;
  data.kind = kind;
  ContentHash hash;
  NamedSums sums;
  for (const std::string& name : train)
    if (Status status = read_batch(place, name, data.train, hash, sums); !status) return status.error();
  if (Status status = read_batch(place, ten ? "test_batch.bin" : "test.bin", data.test, hash, sums); !status)
    return status.error();
  data.files = sums.sums();
  data.file_names = sums.names();
  if (ten) {
    data.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  } else {
    const std::string file = find_file(directory, place.folder, {"fine_label_names.txt"});
    auto names = read_class_names(file, kCifar100Format.classes);
    if (!names) return names.error();
    if (names->size() != kCifar100Format.classes)
      return Error{ErrorKind::kCorrupt, file + " names " + std::to_string(names->size()) + " classes; CIFAR-100 has " +
                                            std::to_string(kCifar100Format.classes)};
    data.classes = *std::move(names);
    for (const std::string& name : data.classes) hash.add(name);
  }
  data.hash = hash.value();
  return data;
}

}  // namespace tg::engine

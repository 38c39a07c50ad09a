#include "engine/data/files/cifar.h"

#include "engine/data/content_hash.h"
#include "engine/data/files/file_bytes.h"

namespace tg::engine {
namespace {

constexpr int kClasses = 10;
constexpr int kTrainingFiles = 5;
constexpr std::size_t kMostBatchBytes = 100'000 * kCifarRecordBytes;  // ten times a real one
constexpr const char* kFolder = "cifar-10-batches-bin";

Status read_batch(const std::string& directory, const std::string& name, ImageSet& set, ContentHash& hash) {
  const std::string path = find_file(directory, kFolder, {name});
  if (path.empty()) {
    return Error{ErrorKind::kInvalidJob, "data-dir " + directory + " has no " + name + ", nor has " + directory + "/" +
                                             kFolder + "; unpack the binary version of CIFAR-10 there"};
  }
  Result<DataFile> file = DataFile::open(path);
  if (!file) return file.error();
  std::vector<std::uint8_t> bytes;
  if (Status read = file->read_up_to(kMostBatchBytes + 1, bytes); !read) return read;
  if (bytes.size() > kMostBatchBytes) {
    return Error{ErrorKind::kCorrupt, path + " holds more than " + std::to_string(kMostBatchBytes) +
                                          " bytes, so it is no batch of CIFAR-10; fetch the binary version of CIFAR-10 "
                                          "again"};
  }
  hash.add(bytes);
  return parse_cifar_batch(bytes, path, set);
}

}  // namespace

Status parse_cifar_batch(std::span<const std::uint8_t> bytes, const std::string& file, ImageSet& set) {
  const auto damaged = [&](const std::string& what) {
    return Error{ErrorKind::kCorrupt, file + " " + what + "; fetch the binary version of CIFAR-10 again"};
  };
  if (bytes.empty()) return damaged("is empty");
  if (bytes.size() % kCifarRecordBytes != 0) {
    return damaged("has " + std::to_string(bytes.size()) + " bytes, which is no whole number of records of " +
                   std::to_string(kCifarRecordBytes) + " (truncated, or another format)");
  }
  const std::size_t records = bytes.size() / kCifarRecordBytes;
  for (std::size_t i = 0; i < records; ++i) {
    if (bytes[i * kCifarRecordBytes] >= kClasses) {
      return damaged("has label " + std::to_string(bytes[i * kCifarRecordBytes]) + " in record " + std::to_string(i) +
                     ", outside 0 to 9");
    }
  }
  set.stored = {3, 32, 32};
  set.labels.reserve(set.labels.size() + records);
  set.pixels.reserve(set.pixels.size() + records * (kCifarRecordBytes - 1));
  for (std::size_t i = 0; i < records; ++i) {
    const auto record = bytes.subspan(i * kCifarRecordBytes, kCifarRecordBytes);
    set.labels.push_back(record[0]);
    set.pixels.insert(set.pixels.end(), record.begin() + 1, record.end());
  }
  return {};
}

Result<Dataset> load_cifar10(const std::string& directory) {
  if (Status status = check_directory(directory, DatasetKind::kCifar10, "the binary batches of CIFAR-10"); !status) {
    return status.error();
  }
  Dataset data;
  data.kind = DatasetKind::kCifar10;
  data.preprocessing = Preprocessing::kCifarTraining24;
  ContentHash hash;
  for (int i = 1; i <= kTrainingFiles; ++i) {
    const std::string name = "data_batch_" + std::to_string(i) + ".bin";
    if (Status status = read_batch(directory, name, data.train, hash); !status) return status.error();
  }
  if (Status status = read_batch(directory, "test_batch.bin", data.test, hash); !status) return status.error();
  data.hash = hash.value();
  return data;
}

}  // namespace tg::engine

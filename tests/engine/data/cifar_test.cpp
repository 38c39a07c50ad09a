#include "engine/data/files/cifar.h"

#include <gtest/gtest.h>

#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

void write_cifar(const std::string& directory) {
  for (std::size_t i = 1; i <= 5; ++i) {
    write_plain(directory + "/data_batch_" + std::to_string(i) + ".bin", cifar_records(4, 10 * i));
  }
  write_plain(directory + "/test_batch.bin", cifar_records(3, 77));
}

TEST(Cifar, ReadsDirectoryAndItsSubfolderAlike) {
  const Folder plain, nested;
  write_cifar(plain.path());
  write_cifar(nested / "cifar-10-batches-bin");
  const auto data = load(DatasetKind::kCifar10, plain.path());
  ASSERT_TRUE(data.ok()) << data.error().message;
  const Dataset& d = **data;
  ASSERT_EQ(d.train.count(), 20u);
  ASSERT_EQ(d.test.count(), 3u);
  EXPECT_EQ(d.train.stored, (ImageShape{3, 32, 32}));
  EXPECT_EQ(d.preprocessing, Preprocessing::kCifarTraining24);
  for (std::size_t i = 0; i < 20; ++i) {
    const std::size_t sample = 10 * (1 + i / 4) + i % 4;
    EXPECT_EQ(d.train.labels[i], sample % 10);
    EXPECT_EQ(d.train.pixels[3072 * i + 2000], pattern(sample, 2000));
  }
  EXPECT_EQ(d.test.pixels[3072 * 2 + 3071], pattern(79, 3071));
  const auto again = load(DatasetKind::kCifar10, nested.path());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ((*again)->hash, d.hash);
  EXPECT_EQ((*again)->train.pixels, d.train.pixels);
}

TEST(Cifar, ErrorsNameTheFileAndWhatToDo) {
  const Folder folder;
  expect_text(error_of(DatasetKind::kCifar10, ""), "data-dir");
  expect_text(error_of(DatasetKind::kCifar10, folder.path()), "is empty");
  write_cifar(folder.path());
  std::filesystem::remove(folder / "data_batch_4.bin");
  expect_text(error_of(DatasetKind::kCifar10, folder.path()), "no data_batch_4.bin");

  const std::string file = folder / "data_batch_4.bin";
  Bytes bytes = cifar_records(4, 40);
  bytes.pop_back();
  write_plain(file, bytes);
  expect_text(error_of(DatasetKind::kCifar10, folder.path()), file + " has 12291 bytes");
  write_plain(file, {});
  expect_text(error_of(DatasetKind::kCifar10, folder.path()), file + " is empty");
  bytes = cifar_records(4, 40);
  bytes[3073] = 10;
  write_plain(file, bytes);
  expect_text(error_of(DatasetKind::kCifar10, folder.path()), "label 10 in record 1");
}

TEST(Cifar, FailedParseLeavesTheSetAlone) {
  ImageSet set;
  ASSERT_TRUE(parse_cifar_batch(cifar_records(2, 0), "a", set).ok());
  const ImageSet before = set;
  Bytes bad = cifar_records(2, 5);
  bad[3073] = 200;
  EXPECT_FALSE(parse_cifar_batch(bad, "b", set).ok());
  EXPECT_EQ(set.pixels, before.pixels);
  EXPECT_EQ(set.labels, before.labels);
}

}  // namespace
}  // namespace tg::engine::test

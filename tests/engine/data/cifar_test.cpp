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
  const Recipe recipe = make_recipe(d, {3, 24, 24}).value();
  EXPECT_EQ(recipe.colour, Colour::kPaper);
  EXPECT_EQ(recipe.normalization, Normalization::kPerImage);
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

// Known since the first release: nodes of two releases would otherwise refuse each other, for no reason.
TEST(Cifar, HashIsFrozen) {
  const Folder folder;
  write_cifar(folder.path());
  EXPECT_EQ((*load(DatasetKind::kCifar10, folder.path()))->hash, 6204157040772556779u);
}

TEST(Cifar, HundredClassesHaveTheirFineLabels) {
  const Folder folder;
  const auto records = [](std::size_t count, std::size_t salt) {
    Bytes bytes;
    for (std::size_t i = 0; i < count; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(i % 20));
      bytes.push_back(static_cast<std::uint8_t>((7 * i + salt) % 100));
      for (std::size_t at = 0; at < 3072; ++at) bytes.push_back(pattern(i + salt, at));
    }
    return bytes;
  };
  write_plain(folder / "cifar-100-binary/train.bin", records(5, 0));
  write_plain(folder / "cifar-100-binary/test.bin", records(3, 50));
  const auto data = load(DatasetKind::kCifar100, folder.path());
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->train.labels, (std::vector<std::uint16_t>{0, 7, 14, 21, 28}));
  EXPECT_EQ((*data)->test.labels, (std::vector<std::uint16_t>{50, 57, 64}));
  EXPECT_EQ((*data)->train.pixels[3072 + 9], pattern(1, 9));
  EXPECT_EQ((*data)->classes.size(), 100u);
  EXPECT_EQ((*data)->classes[99], "99");
  write_plain(folder / "cifar-100-binary/fine_label_names.txt", {'a', 'p', 'p', 'l', 'e', '\n'});
  EXPECT_EQ((*load(DatasetKind::kCifar100, folder.path()))->classes[0], "apple");
  Bytes bad = records(2, 0);
  bad[3075] = 100;
  write_plain(folder / "cifar-100-binary/test.bin", bad);
  expect_text(error_of(DatasetKind::kCifar100, folder.path()), "label 100 in record 1, outside 0 to 99");
  bad.pop_back();
  write_plain(folder / "cifar-100-binary/test.bin", bad);
  expect_text(error_of(DatasetKind::kCifar100, folder.path()), "not a whole number of records of 3074");
}

TEST(Cifar, FailedParseLeavesTheSetAlone) {
  ImageSet set;
  ASSERT_TRUE(parse_cifar_batch(cifar_records(2, 0), kCifar10Format, "a", set).ok());
  const ImageSet before = set;
  Bytes bad = cifar_records(2, 5);
  bad[3073] = 200;
  EXPECT_FALSE(parse_cifar_batch(bad, kCifar10Format, "b", set).ok());
  EXPECT_EQ(set.pixels, before.pixels);
  EXPECT_EQ(set.labels, before.labels);
}

}  // namespace
}  // namespace tg::engine::test

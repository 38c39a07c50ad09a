#include "engine/data/files/mnist.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

constexpr std::size_t kTrain = 25, kTest = 11;

// The four files with the names' middle as given ("-idx" or ".idx") and an ending.
void write_mnist(const std::string& directory, const std::string& middle, bool gzip) {
  const auto write = [&](const std::string& name, const Bytes& bytes) {
    if (gzip) {
      write_gzip(directory + "/" + name + ".gz", bytes);
    } else {
      write_plain(directory + "/" + name, bytes);
    }
  };
  write("train-images" + middle + "3-ubyte", idx_images(kTrain, 28));
  write("train-labels" + middle + "1-ubyte", idx_labels(kTrain));
  write("t10k-images" + middle + "3-ubyte", idx_images(kTest, 28, 100));
  write("t10k-labels" + middle + "1-ubyte", idx_labels(kTest));
}

TEST(Mnist, ReadsEverySpellingToTheSameDataset) {
  std::uint64_t hash = 0;
  for (const char* middle : {"-idx", ".idx"}) {
    for (const bool gzip : {false, true}) {
      for (const char* subfolder : {"", "/mnist"}) {
        const Folder folder;
        write_mnist(folder.path() + subfolder, middle, gzip);
        const auto data = load(DatasetKind::kMnist, folder.path());
        ASSERT_TRUE(data.ok()) << data.error().message;
        const Dataset& d = **data;
        EXPECT_EQ(d.train.count(), kTrain);
        EXPECT_EQ(d.test.count(), kTest);
        EXPECT_EQ(d.train.stored, (ImageShape{1, 28, 28}));
        EXPECT_EQ(d.train.pixels[784 * 3 + 5], pattern(3, 5));
        EXPECT_EQ(d.test.pixels[784 * 10 + 783], pattern(110, 783));
        EXPECT_EQ(d.train.labels[13], 3);
        if (hash == 0) hash = d.hash;
        EXPECT_EQ(d.hash, hash) << "the hash is over the content, however it is stored";
      }
    }
  }
}

TEST(Mnist, HashSeesEveryByte) {
  const Folder folder;
  write_mnist(folder.path(), "-idx", false);
  const std::uint64_t hash = (*load(DatasetKind::kMnist, folder.path()))->hash;
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    Bytes bytes = read_plain(folder / name);
    bytes.back() ^= 1;
    write_plain(folder / name, bytes);
    const auto changed = load(DatasetKind::kMnist, folder.path());
    ASSERT_TRUE(changed.ok()) << changed.error().message;
    EXPECT_NE((*changed)->hash, hash) << name;
    bytes.back() ^= 1;
    write_plain(folder / name, bytes);
  }
}

TEST(Mnist, ErrorsNameTheFileAndWhatToDo) {
  const Folder folder;
  expect_text(error_of(DatasetKind::kMnist, ""), "data-dir");
  expect_text(error_of(DatasetKind::kMnist, folder / "nowhere"), folder / "nowhere");
  expect_text(error_of(DatasetKind::kMnist, folder.path()), "is empty");

  write_plain(folder / "unrelated", {1, 2, 3});
  expect_text(error_of(DatasetKind::kMnist, folder.path()), "train-images-idx3-ubyte");

  const std::string images = folder / "train-images-idx3-ubyte", labels = folder / "train-labels-idx1-ubyte";
  write_mnist(folder.path(), "-idx", false);
  const auto with = [&](const std::string& file, Bytes bytes, const std::string& says) {
    const Bytes good = read_plain(file);
    write_plain(file, bytes);
    const auto data = load(DatasetKind::kMnist, folder.path());
    ASSERT_FALSE(data.ok()) << says;
    EXPECT_EQ(data.error().kind, ErrorKind::kCorrupt);
    expect_text(data.error().message, file);
    expect_text(data.error().message, says);
    expect_text(data.error().message, ";");  // what to do comes behind it
    write_plain(file, good);
  };
  Bytes bytes = read_plain(images);
  with(images, {}, "truncated");
  with(images, Bytes(bytes.begin(), bytes.end() - 1), "truncated");
  with(images, idx_labels(kTrain), "does not hold grey pictures");
  with(images, idx_images(kTrain - 1, 28), "labels");
  bytes.push_back(0);
  with(images, bytes, "too long");
  with(images, {0, 0, 8, 3, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 4, 0}, "truncated");
  with(images, {0, 0, 8, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 4, 0, 0, 0, 4, 0}, "claims 4294967295 samples");
  with(images, {0, 0, 8, 3, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1}, "claims samples of 0 or of more than");
  with(images, {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 28}, "no samples");
  Bytes bad_label = idx_labels(kTrain);
  bad_label.back() = 10;
  write_plain(labels, bad_label);  // whole, and of another set: the job is wrong, not the file
  const auto other = load(DatasetKind::kMnist, folder.path());
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().kind, ErrorKind::kInvalidJob);
  expect_text(other.error().message, labels + " has labels up to 10");
  expect_text(other.error().message, "another set, such as EMNIST");
}

TEST(Mnist, DamagedGzipIsAnError) {
  const Folder folder;
  write_mnist(folder.path(), "-idx", true);
  const std::string file = folder / "t10k-images-idx3-ubyte.gz";
  const Bytes good = read_plain(file);
  write_plain(file, Bytes(good.begin(), good.end() - 20));
  expect_text(error_of(DatasetKind::kMnist, folder.path()), file);
  Bytes flipped = good;
  flipped[flipped.size() / 2] ^= 0x10;
  write_plain(file, flipped);
  expect_text(error_of(DatasetKind::kMnist, folder.path()), file);
}

// Known since the first release: nodes of two releases would otherwise refuse each other, for no reason.
TEST(Mnist, HashIsFrozen) {
  const Folder folder;
  write_mnist(folder.path(), "-idx", false);
  EXPECT_EQ((*load(DatasetKind::kMnist, folder.path()))->hash, 5478982674754017817u);
}

// A small gzip file that unpacks to gigabytes: a member of 16 MiB of zeros, many times over.
TEST(Mnist, AGzipBombTakesNoMoreMemoryThanItsHeaderPromises) {
  const Folder folder;
  write_mnist(folder.path(), "-idx", true);
  const std::string images = folder / "train-images-idx3-ubyte.gz";
  Bytes bomb = read_plain(images);
  write_gzip(folder / "zeros", Bytes(std::size_t{16} << 20));
  const Bytes zeros = read_plain(folder / "zeros");
  for (int i = 0; i < 256; ++i) bomb.insert(bomb.end(), zeros.begin(), zeros.end());  // 4 GiB
  write_plain(images, bomb);
  peak_kib();
  const long before = peak_kib();
  expect_text(error_of(DatasetKind::kMnist, folder.path()),
              images + " is too long: its header promises " + std::to_string(kTrain * 784) + " bytes");
  const long peak = peak_kib();
  std::printf("a bomb of %zu KiB that unpacks to 4 GiB: %ld KiB before, %ld KiB at most\n", bomb.size() / 1024, before,
              peak);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they keep what was freed
  EXPECT_LT(peak - before, 8 * 1024);
#endif
}

TEST(Mnist, DirectoryInPlaceOfAFileIsAnError) {
  const Folder folder;
  write_mnist(folder.path(), "-idx", false);
  std::filesystem::remove(folder / "train-labels-idx1-ubyte");
  std::filesystem::create_directory(folder / "train-labels-idx1-ubyte");
  expect_text(error_of(DatasetKind::kMnist, folder.path()), "train-labels-idx1-ubyte");
}

TEST(Mnist, RealMnist) {
  const char* given = std::getenv("TGD_DATA_DIR");
  const std::string directory = given != nullptr ? given : TGD_SOURCE_DIR "/../shared/data";
  if (!std::filesystem::exists(directory + "/mnist")) {
    GTEST_SKIP() << "no MNIST in " << directory << "; set TGD_DATA_DIR to a directory that has mnist/";
  }
  const auto data = load(DatasetKind::kMnist, directory);
  ASSERT_TRUE(data.ok()) << data.error().message;
  const Dataset& d = **data;
  ASSERT_EQ(d.train.count(), 60'000u);
  ASSERT_EQ(d.test.count(), 10'000u);
  EXPECT_EQ(d.train.stored, (ImageShape{1, 28, 28}));
  // The first labels of both sets, as everyone has seen them.
  EXPECT_TRUE(std::ranges::equal(std::span(d.train.labels).first(8), std::array{5, 0, 4, 1, 9, 2, 1, 3}));
  EXPECT_TRUE(std::ranges::equal(std::span(d.test.labels).first(8), std::array{7, 2, 1, 0, 4, 1, 4, 9}));
  EXPECT_EQ(std::ranges::count(d.test.labels, 1), 1135);
}

}  // namespace
}  // namespace tg::engine::test

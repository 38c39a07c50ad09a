#include "engine/data/files/array_sets.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/data/files/array.h"
#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

Bytes npy(const std::string& header, const Bytes& data, std::uint8_t version = 1) {
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  const std::size_t size = header.size();
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes.push_back(static_cast<std::uint8_t>(size >> (8 * i)));
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

std::string npy_header(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }          \n";
}

template <class Value>
Bytes bytes_of(const std::vector<Value>& values) {
  Bytes bytes(values.size() * sizeof(Value));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A reader over bytes in memory.
ReadNext from(const Bytes& bytes) {
  return [&bytes, at = std::size_t{0}](std::size_t most, std::vector<std::uint8_t>& out) mutable -> Status {
    const std::size_t count = std::min(most, bytes.size() - at);
    out.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at),
               bytes.begin() + static_cast<std::ptrdiff_t>(at + count));
    at += count;
    return {};
  };
}
const Seen kUnseen = [](std::span<const std::uint8_t>) {};

Result<SampleArray> samples(const Bytes& bytes, ArrayFormat format = ArrayFormat::kNpy) {
  return read_samples(format, from(bytes), kUnseen, "x.npy");
}
std::string problem_of(const Bytes& bytes, ArrayFormat format = ArrayFormat::kNpy) {
  const auto array = samples(bytes, format);
  return array.ok() ? "no error" : array.error().message;
}
Result<std::vector<std::uint16_t>> labels(const Bytes& bytes) {
  return read_labels(ArrayFormat::kNpy, from(bytes), kUnseen, "y.npy");
}

TEST(Arrays, NpyOfAllVersionsAndTypes) {
  for (const std::uint8_t version : {1, 2, 3}) {
    const auto array = samples(npy(npy_header("|u1", "2, 3"), {1, 2, 3, 4, 5, 6}, version));
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ(array->shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(array->bytes, (Bytes{1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(samples(npy(npy_header("<f4", "2,"), bytes_of<float>({1.5f, -2})))->floats, (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(samples(npy(npy_header("<f8", "2,"), bytes_of<double>({0.1, 3})))->floats, (std::vector<float>{0.1f, 3}));
  EXPECT_EQ(samples(npy(npy_header(">f4", "1,"), {0x3f, 0x80, 0, 0}))->floats, std::vector<float>{1});
  EXPECT_EQ(*labels(npy(npy_header("<i8", "3,"), bytes_of<std::int64_t>({7, 0, 65534}))),
            (std::vector<std::uint16_t>{7, 0, 65534}));
  EXPECT_EQ(*labels(npy(npy_header("<u2", "1, 1"), {4, 1})), std::vector<std::uint16_t>{260});
  EXPECT_EQ(*labels(npy(npy_header("|i1", "1,"), {5})), std::vector<std::uint16_t>{5});
}

TEST(Arrays, IdxOfAllTypes) {
  const auto array = samples({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 9}, ArrayFormat::kIdx);
  ASSERT_TRUE(array.ok()) << array.error().message;
  EXPECT_EQ(array->shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(array->bytes, (Bytes{7, 9}));
  EXPECT_EQ(samples({0, 0, 0x0d, 1, 0, 0, 0, 1, 0x40, 0, 0, 0}, ArrayFormat::kIdx)->floats, std::vector<float>{2});
}

TEST(Arrays, ErrorsNameTheFileAndWhatToDo) {
  const Bytes good = npy(npy_header("|u1", "2, 3"), {1, 2, 3, 4, 5, 6});
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string problem = problem_of(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    ASSERT_TRUE(problem.starts_with("x.npy ")) << problem;
    ASSERT_NE(problem.find("truncated"), std::string::npos) << problem;
  }
  Bytes longer = good;
  longer.push_back(0);
  expect_text(problem_of(longer), "is too long: its header promises 6 bytes");
  Bytes other = good;
  other[0] = 0x92;
  expect_text(problem_of(other), "does not begin as .npy files do");
  expect_text(problem_of(npy(npy_header("|u1", "2"), {1, 2}, 4)), "version 4");
  expect_text(problem_of(npy(npy_header("<i4", "1,"), Bytes(4))), "x.astype('float32')");
  expect_text(problem_of(npy(npy_header("|O", "1,"), {})), "elements of type |O");
  expect_text(problem_of(npy(npy_header("<c8", "1,"), {})), "elements of type <c8");
  expect_text(problem_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", {})),
              "numpy.ascontiguousarray");
  expect_text(problem_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", {})), "numpy.save");
  expect_text(problem_of(npy("{'descr': '<f4', 'shape': (2,), }", {})), "numpy.save");
  expect_text(problem_of(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", {})),
              "numpy.save");
  expect_text(problem_of(npy(npy_header("|u1", ""), {1})), "a single number");
  expect_text(problem_of(npy(npy_header("|u1", "0, 5"), {})), "holds no samples");
  expect_text(problem_of(npy(npy_header("|u1", "5, 0"), {})), "samples of 0 or of more than");
  expect_text(problem_of(npy(npy_header("|u1", "1, 2, 3, 4, 5"), {})), "4 dimensions at most");
  expect_text(problem_of(npy(npy_header("<f4", "2,"), bytes_of<float>({1, std::nanf("")}))), "value in sample 1");
  expect_text(problem_of(npy(npy_header("<f8", "1,"), bytes_of<double>({1e300}))), "not a finite float32");
  expect_text(problem_of({0, 0, 8, 5, 0, 0, 0, 1}, ArrayFormat::kIdx), "does not begin as IDX");
  expect_text(problem_of({0, 0, 0, 1, 0, 0, 0, 1}, ArrayFormat::kIdx), "does not begin as IDX");

  const auto label_problem = [](const Bytes& bytes) {
    const auto read = labels(bytes);
    return read.ok() ? "no error" : read.error().message;
  };
  expect_text(label_problem(npy(npy_header("<i8", "2,"), bytes_of<std::int64_t>({1, -1}))), "label -1 of sample 1");
  expect_text(label_problem(npy(npy_header("<u8", "1,"), bytes_of<std::uint64_t>({UINT64_MAX}))), "outside 0 to 65534");
  expect_text(label_problem(npy(npy_header("<f4", "1,"), bytes_of<float>({1}))), "y.astype('int64')");
  expect_text(label_problem(npy(npy_header("|u1", "1, 10"), Bytes(10))), "10 numbers per sample");
  expect_text(label_problem(npy(npy_header("<f4", "1, 3"), bytes_of<float>({0, 1, 0}))), "y.argmax(axis=1)");
}

// Headers that promise more than there is take no memory for it.
TEST(Arrays, PromisesTakeNoMemory) {
  expect_text(problem_of(npy(npy_header("|u1", "16777216, 16777216"), {1})), "more than the 68719476736");
  expect_text(problem_of(npy(npy_header("|u1", "18446744073709551615, 1"), {1})),
              "claims 18446744073709551615 samples");
  expect_text(problem_of(npy(npy_header("|u1", "99999999999999999999, 1"), {1})), "numpy.save");
  expect_text(problem_of(npy(npy_header("|u1", "1, 4294967296, 4294967296"), {1})), "samples of 0 or of more than");
  expect_text(problem_of(npy(npy_header("|u1", "1048576, 1024"), {1})), "is truncated: its header promises 1073741824");
  Bytes header = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xff, 0xff, 0xff, 0xff};
  expect_text(problem_of(header), "claims a header of 4294967295 bytes");
}

std::string set_problem(const DatasetOptions& options) {
  const auto data = load_dataset(options);
  return data.ok() ? "no error" : data.error().message;
}

DatasetOptions options_of(DatasetKind kind, const Folder& folder) {
  DatasetOptions options;
  options.kind = kind;
  options.directory = folder.path();
  return options;
}

TEST(Arrays, FourFilesAreASet) {
  const Folder folder;
  write_plain(folder / "x_train.npy", npy(npy_header("<f4", "3, 2"), bytes_of<float>({1, 2, 3, 4, 5, 6})));
  write_plain(folder / "y_train.npy", npy(npy_header("<i8", "3,"), bytes_of<std::int64_t>({0, 2, 1})));
  write_plain(folder / "x_test.npy", npy(npy_header("<f4", "1, 2"), bytes_of<float>({7, 8})));
  write_plain(folder / "y_test.npy", npy(npy_header("<i8", "1,"), bytes_of<std::int64_t>({2})));
  DatasetOptions options = options_of(DatasetKind::kNpy, folder);
  const auto loaded = load_dataset(options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Dataset& data = **loaded;
  EXPECT_EQ(data.train.stored, (ImageShape{2, 1, 1}));
  EXPECT_EQ(data.train.values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(data.train.labels, (std::vector<std::uint16_t>{0, 2, 1}));
  EXPECT_EQ(data.classes, (std::vector<std::string>{"0", "1", "2"}));
  const Recipe recipe = make_recipe(data, {2, 1, 1}).value();
  EXPECT_EQ(recipe.normalization, Normalization::kMeasured);
  EXPECT_EQ(recipe.mean, (std::vector<float>{3, 4}));
  Batch batch;
  batch.count = 1;
  fill_evaluation_batch(data, recipe, 0, batch);
  EXPECT_EQ(batch.images[0], (7 - 3.0f) / recipe.deviation[0]);

  struct Enough {};
  DatasetOptions ended = options;
  ended.advanced = [](std::size_t, std::size_t) { throw Enough{}; };
  EXPECT_THROW((void)load_dataset(ended), Enough);

  const std::uint64_t hash = data.hash;
  write_plain(folder / "classes.txt", {'o', '\n', 'p', '\r', '\n', 'q', '\n', 'r', '\n', '\n'});
  const auto named = load_dataset(options).value();
  EXPECT_EQ(named->classes, (std::vector<std::string>{"o", "p", "q", "r"}));
  EXPECT_NE(named->hash, hash);
  write_plain(folder / "y_test.npy", npy(npy_header("<i8", "1,"), bytes_of<std::int64_t>({1})));
  EXPECT_NE((*load_dataset(options))->hash, named->hash);

  options.test_share = 0.1;
  expect_text(set_problem(options), "leave out one of them");
  std::filesystem::rename(folder / "x_train.npy", folder / "kept");
  ASSERT_EQ(::mkfifo((folder / "x_train.npy").c_str(), 0600), 0);
  options.test_share = 0;
  expect_text(set_problem(options), "x_train.npy: it is not a regular file");  // opening it would wait for a writer
  std::filesystem::rename(folder / "kept", folder / "x_train.npy");
  options.test_share = 0;
  std::filesystem::remove(folder / "y_test.npy");
  expect_text(set_problem(options), "x_test.npy but no labels");
  std::filesystem::remove(folder / "x_test.npy");
  expect_text(set_problem(options), "set test-share = 0.1");
  write_plain(folder / "y_train.npy", npy(npy_header("<i8", "2,"), bytes_of<std::int64_t>({0, 2})));
  options.test_share = 0.5;
  expect_text(set_problem(options), "has 3 samples");
}

TEST(Arrays, OnePartIsDividedByTestShare) {
  const Folder folder;
  Bytes pixels;
  std::vector<std::int64_t> y;
  for (std::uint8_t i = 0; i < 20; ++i) {
    for (std::uint8_t at = 0; at < 12; ++at) pixels.push_back(static_cast<std::uint8_t>(10 * i + at));
    y.push_back(i % 2);
  }
  write_plain(folder / "images.npy", npy(npy_header("|u1", "20, 2, 2, 3"), pixels));
  write_plain(folder / "labels.npy", npy(npy_header("<i8", "20,"), bytes_of(y)));
  DatasetOptions options = options_of(DatasetKind::kNpy, folder);
  options.test_share = 0.2;
  const auto loaded = load_dataset(options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Dataset& data = **loaded;
  ASSERT_EQ(data.train.count(), 16u);
  ASSERT_EQ(data.test.count(), 4u);
  EXPECT_EQ(std::ranges::count(data.test.labels, 1), 2);
  EXPECT_EQ(data.train.stored, (ImageShape{3, 2, 2})) << "channels last";
  std::vector<int> seen;
  for (const ImageSet* set : {&data.train, &data.test}) {
    for (std::size_t i = 0; i < set->count(); ++i) {
      const std::uint8_t first = set->pixels[12 * i];
      EXPECT_EQ(set->pixels[12 * i + 4], first + 1) << "green of the first pixel";
      EXPECT_EQ(set->pixels[12 * i + 1], first + 3) << "red of the second";
      EXPECT_EQ(set->labels[i], first / 10 % 2) << "labels stay with their samples";
      seen.push_back(first / 10);
    }
  }
  std::ranges::sort(seen);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST(Arrays, IdxOfAnyShapeAndNumberOfClasses) {
  const Folder folder;
  write_plain(folder / "emnist-train-images-idx3-ubyte",
              {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  write_gzip(folder / "emnist-train-labels-idx1-ubyte.gz", {0, 0, 8, 1, 0, 0, 0, 2, 26, 1});
  write_plain(folder / "emnist-test-images-idx3-ubyte",
              {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
  write_plain(folder / "emnist-test-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 1, 3});
  const DatasetOptions options = options_of(DatasetKind::kIdx, folder);
  const auto loaded = load_dataset(options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*loaded)->train.stored, (ImageShape{1, 2, 3}));
  EXPECT_EQ((*loaded)->train.labels, (std::vector<std::uint16_t>{26, 1}));
  EXPECT_EQ((*loaded)->classes.size(), 27u);
  EXPECT_EQ(make_recipe(**loaded, {1, 2, 3}).value().normalization, Normalization::kSymmetric);
  write_plain(folder / "other-train-images-idx3-ubyte", {0});
  expect_text(set_problem(options), "more than one file with train-images in its name");
}

}  // namespace
}  // namespace tg::engine::test

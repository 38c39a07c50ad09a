#include "engine/data/folder/folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "engine/data/folder/known_pictures.h"
#include "engine/data/folder/list.h"
#include "engine/data/hold_out.h"
#include "engine/data/limits.h"
#include "tests/engine/data/pictures.h"

namespace tg::engine::test {
namespace {

constexpr const char* kClasses[] = {"ape", "bee", "cow"};

// Pictures of 40x32 and, unless `even`, other sizes; every third one PNG.
void write_part(const std::string& folder, int per_class, bool even = true) {
  for (int c = 0; c < 3; ++c) {
    for (int i = 0; i < per_class; ++i) {
      const Picture picture = ramp(3, even ? 40 : 40 + 7 * i, 32, 10 * c + i);
      const std::string name = folder + "/" + kClasses[c] + "/" + std::to_string(100 + i);
      if (i % 3 == 2)
        write_plain(name + ".PNG", to_png(picture));
      else
        write_plain(name + ".jpg", to_jpeg(picture));
    }
  }
}

DatasetOptions options_of(const Folder& folder) {
  DatasetOptions options;
  options.kind = DatasetKind::kFolder;
  options.directory = folder.path();
  options.threads = 3;
  return options;
}

std::string problem_of(const DatasetOptions& options) {
  const auto data = load_dataset(options);
  return data.ok() ? "no error" : data.error().message;
}

TEST(Folder, ClassesAreFoldersInTheOrderOfTheirNames) {
  const Folder folder;
  write_part(folder / "train", 4);
  write_part(folder / "test", 2);
  write_plain(folder / "train/bee/notes.txt", {1});
  write_plain(folder / "train/bee/.hidden.jpg", {1});
  write_plain(folder / "train/bee/deep/deeper/99.jpeg", to_jpeg(ramp(3, 40, 32)));
  const auto loaded = load_dataset(options_of(folder));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Dataset& data = **loaded;
  EXPECT_EQ(data.classes, (std::vector<std::string>{"ape", "bee", "cow"}));
  EXPECT_EQ(data.train.labels, (std::vector<std::uint16_t>{0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(data.test.labels, (std::vector<std::uint16_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(data.train.stored, (ImageShape{3, 40, 32}));
  const Recipe recipe = make_recipe(data, {3, 40, 32}).value();
  EXPECT_EQ(recipe.crop, Crop::kWindow);
  EXPECT_EQ(recipe.resize, 0);
  Batch batch;
  batch.count = 6;
  fill_evaluation_batch(data, recipe, 0, batch, 2);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
}

TEST(Folder, PicturesOfOtherSizesAreResizedAndCropped) {
  const Folder folder;
  write_part(folder / "train", 4, false);
  write_part(folder / "val", 2, false);
  const auto data = load_dataset(options_of(folder)).value();
  EXPECT_EQ(data->train.stored, (ImageShape{3, 0, 0}));
  EXPECT_EQ(input_of(data->kind, data->train.stored, ModelKind::kAlexnet, 0), (ImageShape{3, 224, 224}));
  const Recipe recipe = make_recipe(*data, {3, 28, 28}, {}, 2).value();
  EXPECT_EQ(recipe.crop, Crop::kArea);
  EXPECT_EQ(recipe.resize, 32);
  SampleStream stream(1, data->train.count());
  Batch batch;
  batch.count = 24;
  fill_training_batch(*data, recipe, stream, 1, 0, batch);
  for (const float v : batch.images.span()) ASSERT_TRUE(v > -5 && v < 5);
  const Recipe grey = make_recipe(*data, {1, 28, 28}).value();
  batch.count = 6;
  fill_evaluation_batch(*data, grey, 0, batch);
  EXPECT_EQ(batch.images.size(), 6u * 28 * 28);
}

TEST(Folder, HashSeesNamesLabelsAndBytesOnAnyNumberOfThreads) {
  const Folder folder;
  write_part(folder / "train", 3);
  write_part(folder / "test", 1);
  DatasetOptions options = options_of(folder);
  std::set<std::uint64_t> hashes = {(*load_dataset(options))->hash};
  options.threads = 1;
  EXPECT_TRUE(hashes.contains((*load_dataset(options))->hash));
  const std::string file = folder / "train/ape/100.jpg";
  Bytes bytes = read_plain(file);
  bytes.push_back(0);  // behind the picture's end
  write_plain(file, bytes);
  EXPECT_TRUE(hashes.insert((*load_dataset(options))->hash).second);
  std::filesystem::rename(file, folder / "train/ape/1000.jpg");
  EXPECT_TRUE(hashes.insert((*load_dataset(options))->hash).second);
  std::filesystem::rename(folder / "train/cow", folder / "train/cat");
  std::filesystem::rename(folder / "test/cow", folder / "test/cat");
  EXPECT_TRUE(hashes.insert((*load_dataset(options))->hash).second);
}

TEST(Folder, TestShareHoldsBackOfEachClass) {
  const Folder folder;
  write_part(folder.path(), 10);
  DatasetOptions options = options_of(folder);
  expect_text(problem_of(options), "has no test set");
  options.test_share = 0.2;
  const auto data = load_dataset(options).value();
  EXPECT_EQ(data->train.count(), 24u);
  EXPECT_EQ(data->test.labels, (std::vector<std::uint16_t>{0, 0, 1, 1, 2, 2}));
  const std::uint64_t hash = data->hash;
  options.seed = 2;
  EXPECT_NE((*load_dataset(options))->hash, hash) << "other samples are held back";
  options.test_share = 0.01;
  expect_text(problem_of(options), "test-share leaves no picture");
}

TEST(Folder, HoldOutIsDrawnPerClassAndKeepsOneForTraining) {
  const std::vector<std::uint16_t> labels = {0, 1, 0, 1, 0, 1, 0, 1, 2, 0};
  const auto held = hold_out(labels, 3, 0.5, 7);
  int counts[3] = {};
  for (std::size_t i = 0; i < labels.size(); ++i) counts[labels[i]] += held[i];
  EXPECT_EQ(counts[0], 3);  // out of 5
  EXPECT_EQ(counts[1], 2);
  EXPECT_EQ(counts[2], 0);
  EXPECT_EQ(held, hold_out(labels, 3, 0.5, 7));
}

TEST(Folder, ListsNameFilesAndClasses) {
  const auto parsed = [](const std::string& line) {
    const ListedFile file = parse_listed_file(line);
    return file.file + "|" + file.class_name;
  };
  EXPECT_EQ(parsed("cat/1.jpg"), "cat/1.jpg|cat");
  EXPECT_EQ(parsed("a/b/cat/my cat.png"), "a/b/cat/my cat.png|cat");
  EXPECT_EQ(parsed("ILSVRC2012_val_00000001.JPEG 65"), "ILSVRC2012_val_00000001.JPEG|65");
  EXPECT_EQ(parsed("x/cat 7/1.jpg"), "x/cat 7/1.jpg|cat 7");
  EXPECT_EQ(parsed("x/1.jpg\tsmall cat"), "x/1.jpg|small cat");
  EXPECT_EQ(parsed("1.jpg"), "1.jpg|");

  const Folder folder;
  for (int i = 0; i < 12; ++i) write_plain(folder / ("all/" + std::to_string(i) + ".jpg"), to_jpeg(ramp(1, 8, 8, i)));
  const auto write = [&](const std::string& name, const std::string& text) {
    write_plain(folder / name, Bytes(text.begin(), text.end()));
  };
  write("train.txt", "all/3.jpg 10\r\nall/1.jpg 9\nall/2.jpg 10\n\nall/4.jpg 9");
  write("test.txt", "all/5.jpg 9\n");
  const DatasetOptions options = options_of(folder);
  const auto loaded = load_dataset(options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const Dataset& data = **loaded;
  EXPECT_EQ(data.classes, (std::vector<std::string>{"9", "10"})) << "numbers in their own order";
  EXPECT_EQ(data.train.labels, (std::vector<std::uint16_t>{0, 1, 1, 0}));
  EXPECT_EQ(data.train.stored, (ImageShape{1, 8, 8})) << "all are grey";
  write("train.txt", "all/3.jpg 10\n../../etc/1.jpg 9\n");
  expect_text(problem_of(options), "train.txt:2: ");
  write("train.txt", "1.jpg\n");
  expect_text(problem_of(options), "no class");
  write("train.txt", "all/3.jpg 10\nall/77.jpg 9\n");
  expect_text(problem_of(options), "all/77.jpg");
  write("train.txt", "all/3.jpg 10\n");
  expect_text(problem_of(options), "the training set has no class of that name");
  write("train.txt", std::string("all/3.jpg\0 10\n", 14));
  expect_text(problem_of(options), "is not text");
  write("train.txt", std::string(kMaxSamples + 1, '\n'));
  expect_text(problem_of(options), "train.txt has more than 16777216 lines");
}

TEST(Folder, ErrorsNameWhatWasFoundAndWhatToDo) {
  const Folder folder;
  DatasetOptions options = options_of(folder);
  options.directory.clear();
  expect_text(problem_of(options), "data = folder needs data-dir");
  options = options_of(folder);
  expect_text(problem_of(options), "is empty");
  write_plain(folder / "1.jpg", to_jpeg(ramp(3, 8, 8)));
  expect_text(problem_of(options), "has no pictures for training");
  write_part(folder / "train", 2);
  write_part(folder / "test", 1);
  options.test_share = 0.5;
  expect_text(problem_of(options), "leave out one of them");
  options.test_share = 0;
  std::filesystem::create_directory(folder / "train/dog");
  expect_text(problem_of(options), "train/dog counts as a class but holds no .jpg");
  std::filesystem::remove(folder / "train/dog");
  write_plain(folder / "train/bee/1/2/3/4/5/6/7/8/1.jpg", to_jpeg(ramp(3, 40, 32)));
  EXPECT_EQ(problem_of(options), "no error");
  write_plain(folder / "train/bee/1/2/3/4/5/6/7/8/9/1.jpg", to_jpeg(ramp(3, 40, 32)));
  expect_text(problem_of(options), "train/bee/1/2/3/4/5/6/7/8/9/1.jpg is more than 8 folders below its class");
  std::filesystem::remove_all(folder / "train/bee/1");
  std::filesystem::rename(folder / "test/bee", folder / "test/bug");
  expect_text(problem_of(options), "has the class bug (test/bug/100.jpg)");
}

TEST(Folder, DamagedFilesAreFatalOrSkipped) {
  const Folder folder;
  write_part(folder / "train", 3);
  write_part(folder / "test", 3);
  write_plain(folder / "train/bee/101.jpg", {0xff, 0xd8, 0xff, 0xe0});  // no header
  Bytes cut = read_plain(folder / "train/cow/100.jpg");
  cut.resize(cut.size() - 60);  // a header, and too little behind it
  write_plain(folder / "train/cow/100.jpg", cut);
  cut = read_plain(folder / "test/ape/102.PNG");
  cut.resize(cut.size() - 40);
  write_plain(folder / "test/ape/102.PNG", cut);

  DatasetOptions options = options_of(folder);
  const std::string problem = problem_of(options);
  expect_text(problem, "train/bee/101.jpg is damaged: ");
  expect_text(problem, "set damaged = skip");

  expect_text(problem, "; 2 more like it: train/cow/100.jpg, test/ape/102.PNG");

  options.damaged = Damaged::kSkip;
  const auto data = load_dataset(options).value();
  EXPECT_EQ(data->train.labels, (std::vector<std::uint16_t>{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(data->test.labels, (std::vector<std::uint16_t>{0, 0, 1, 1, 1, 2, 2, 2}));
  ASSERT_EQ(data->skipped->count(), 3u);
  expect_text(data->skipped->messages()[1], "train/cow/100.jpg is damaged");
  const std::uint64_t hash = data->hash;
  EXPECT_EQ((*load_dataset(options))->hash, hash);
}

// One that was good when the run was prepared, and is met later.
TEST(Folder, FilesThatAreDamagedUnderARunAreFatalOrSkipped) {
  const Folder folder;
  write_part(folder / "train", 3);
  write_part(folder / "test", 3);
  DatasetOptions options = options_of(folder);
  const auto strict = load_dataset(options).value();
  options.damaged = Damaged::kSkip;
  const auto data = load_dataset(options).value();
  for (const char* name : {"train/cow/100.jpg", "test/ape/102.PNG"}) {
    Bytes cut = read_plain(folder / name);
    cut.resize(cut.size() - 60);
    write_plain(folder / name, cut);
  }
  const Recipe recipe = make_recipe(*data, {3, 40, 32}).value();
  Batch batch;
  batch.count = 9;
  fill_evaluation_batch(*data, recipe, 0, batch, 2);
  EXPECT_EQ(batch.count, 8) << "the damaged one is left out";
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{0, 0, 1, 1, 1, 2, 2, 2}));
  SampleStream stream(1, 9);
  batch.count = 9;
  fill_training_batch(*data, recipe, stream, 1, 0, batch);
  std::vector<int> counts(3);
  for (const std::int32_t label : batch.labels) ++counts[static_cast<std::size_t>(label)];
  EXPECT_EQ(counts, (std::vector<int>{3, 3, 3})) << "the next one of the set takes its place";
  EXPECT_EQ(data->skipped->count(), 2u);
  try {
    SampleStream again(1, strict->train.count());
    fill_training_batch(*strict, recipe, again, 1, 0, batch);
    ADD_FAILURE() << "the damaged picture was not seen";
  } catch (const std::runtime_error& error) {
    expect_text(error.what(), "train/cow/100.jpg is damaged: ");
  }
}

// What was found out is remembered; what the next start finds is the same as without.
TEST(Folder, UnchangedFilesAreNotReadAgain) {
  const Folder folder, memory;
  write_part(folder / "train", 3);
  write_part(folder / "test", 2);
  DatasetOptions options = options_of(folder);
  const std::uint64_t hash = (*load_dataset(options))->hash;
  options.memory_dir = memory / "data";
  EXPECT_EQ((*load_dataset(options))->hash, hash);

  // A picture that is not opened does not need to be readable.
  const std::string one = folder / "train/ape/100.jpg";
  const KnownPictures known(options.memory_dir, options.directory);
  struct stat facts {};
  ASSERT_EQ(::stat(one.c_str(), &facts), 0);
  ASSERT_NE(known.find(KnownPicture("train/ape/100.jpg", facts)), nullptr);
  EXPECT_EQ(known.find(KnownPicture("train/ape/100.jpg", facts))->size(), (PictureSize{3, 40, 32}));
  EXPECT_EQ(known.find(KnownPicture("train/ape/101.jpg", facts)), nullptr);
  EXPECT_EQ((*load_dataset(options))->hash, hash);

  // Written anew with the same size and the same time: it is another file, and damaged.
  const auto time = std::filesystem::last_write_time(one);
  Bytes bytes = read_plain(one);
  std::fill(bytes.end() - 80, bytes.end(), std::uint8_t{0});
  write_plain(one, bytes);
  std::filesystem::last_write_time(one, time);
  expect_text(problem_of(options), "train/ape/100.jpg is damaged");
  options.damaged = Damaged::kSkip;
  EXPECT_EQ((*load_dataset(options))->train.count(), 8u);
  EXPECT_EQ((*load_dataset(options))->train.count(), 8u) << "the damaged one is not taken for good";
}

TEST(Folder, TheMemoryIsCheckedWhenRead) {
  const Folder folder, memory;
  write_part(folder / "train", 2);
  write_part(folder / "test", 1);
  DatasetOptions options = options_of(folder);
  options.memory_dir = memory.path();
  const std::uint64_t hash = (*load_dataset(options))->hash;
  const std::string file = std::filesystem::directory_iterator(memory.path())->path().string();
  const Bytes good = read_plain(file);
  ASSERT_EQ(parse_known_pictures(good).size(), 9u);
  for (std::size_t size = 0; size < good.size(); ++size)
    ASSERT_TRUE(parse_known_pictures(std::span(good).first(size)).empty()) << size;
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes odd = good;
    odd[at] ^= 0x10;
    ASSERT_TRUE(parse_known_pictures(odd).empty()) << at;
  }
  for (const Bytes& odd : {Bytes(), Bytes(good.begin(), good.end() - 100), Bytes(5000, 0xff)}) {
    write_plain(file, odd);
    EXPECT_EQ((*load_dataset(options))->hash, hash);
    EXPECT_EQ(parse_known_pictures(read_plain(file)).size(), 9u) << "and written anew";
  }
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_EQ((*load_dataset(options))->hash, hash) << "a memory that cannot be written costs time only";
}

TEST(Folder, MemoryIsKeptOfSoManyFolders) {
  const Folder memory;
  const Folder folders[kMaxKnownFolders + 2];
  for (const Folder& folder : folders) {
    write_part(folder / "train", 1);
    write_part(folder / "test", 1);
    DatasetOptions options = options_of(folder);
    options.memory_dir = memory.path();
    ASSERT_TRUE(load_dataset(options).ok());
  }
  const auto files = std::filesystem::directory_iterator(memory.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), static_cast<std::ptrdiff_t>(kMaxKnownFolders));
}

// A stop ends the reading of a large set, and what was read until then need not be read again.
TEST(Folder, ReadingCanBeInterruptedAndContinued) {
  const Folder folder, memory;
  write_part(folder / "train", 4);
  write_part(folder / "test", 1);
  struct Enough {};
  DatasetOptions options = options_of(folder);
  options.memory_dir = memory.path();
  for (const std::size_t most : {3u, 8u}) {
    std::atomic<std::size_t> calls{0};
    options.advanced = [&](std::size_t, std::size_t of) {
      if (of == 0) return;  // it lists
      EXPECT_EQ(of, 15u);
      if (++calls == most) throw Enough{};
    };
    EXPECT_THROW((void)load_dataset(options), Enough);
    const std::string file = std::filesystem::directory_iterator(memory.path())->path().string();
    EXPECT_GE(parse_known_pictures(read_plain(file)).size(), most);
  }
  options.advanced = [](std::size_t, std::size_t) {};
  const auto data = load_dataset(options).value();
  EXPECT_THROW((void)make_recipe(*data, {3, 40, 32}, {}, 2, [] { throw Enough{}; }), Enough) << "measuring, too";
}

// Listing many files, or files far away, takes long.
TEST(Folder, ListingCanBeEnded) {
  const Folder by_folder, by_list;
  write_part(by_folder / "train", 4);
  write_part(by_folder / "test", 1);
  const std::string list = "a.jpg\tape\nb.jpg\tbee\nc.jpg\tcow\nd.jpg\tape\n";
  write_plain(by_list / "train.txt", Bytes(list.begin(), list.end()));
  struct Enough {};
  for (const Folder* const folder : {&by_folder, &by_list}) {
    for (const int most : {1, 4}) {
      DatasetOptions options = options_of(*folder);
      options.threads = 1;
      options.test_share = folder == &by_list ? 0.5 : 0;
      int calls = 0;
      options.advanced = [&](std::size_t, std::size_t of) {
        EXPECT_EQ(of, 0u) << "nothing has been read yet";
        if (++calls == most) throw Enough{};
      };
      EXPECT_THROW((void)load_dataset(options), Enough) << folder->path() << " " << most;
      EXPECT_EQ(calls, most);
    }
  }
}

TEST(Folder, AFileThatChangesUnderARunIsAnError) {
  const Folder folder;
  write_part(folder / "train", 1);
  write_part(folder / "test", 1);
  DatasetOptions options = options_of(folder);
  for (const Damaged damaged : {Damaged::kFatal, Damaged::kSkip}) {
    options.damaged = damaged;
    write_plain(folder / "test/ape/100.jpg", to_jpeg(ramp(3, 40, 32)));
    const auto data = load_dataset(options).value();
    const Recipe recipe = make_recipe(*data, {3, 40, 32}).value();
    const auto problem = [&] {
      Batch batch;
      batch.count = 1;
      try {
        fill_evaluation_batch(*data, recipe, 0, batch);
        return std::string("no error");
      } catch (const std::runtime_error& error) {
        return std::string(error.what());
      }
    };
    write_plain(folder / "test/ape/100.jpg", to_jpeg(ramp(3, 4, 4)));
    expect_text(problem(), "has changed since the run was prepared");
    std::filesystem::remove(folder / "test/ape/100.jpg");
    expect_text(problem(), "cannot read " + folder / "test/ape/100.jpg");
    EXPECT_EQ(data->skipped->count(), 0u);
  }
}

TEST(Folder, AFileThatCannotBeReadIsNotSkippedAsDamaged) {
  const Folder folder;
  write_part(folder / "train", 1);
  write_part(folder / "test", 1);
  std::filesystem::create_symlink("nowhere", folder / "train/ape/200.jpg");
  DatasetOptions options = options_of(folder);
  options.damaged = Damaged::kSkip;
  expect_text(problem_of(options), "cannot read " + folder / "train/ape/200.jpg");
}

// The batches are the same however many threads decode them, and waiting is measured.
TEST(Folder, BatchesDoNotDependOnTheThreads) {
  const Folder folder;
  write_part(folder / "train", 6, false);
  write_part(folder / "test", 1);
  const auto data = load_dataset(options_of(folder)).value();
  BatchSource::Options options;
  options.seed = 5;
  options.global_batch = 11;
  options.share = {3, 7};
  options.last_step = 12;
  options.recipe = make_recipe(*data, {3, 28, 28}).value();
  BatchSource one(data, options);
  options.threads = 4;
  BatchSource four(data, options);
  for (std::uint64_t step = 0; step < options.last_step; ++step) {
    const Batch& a = one.next();
    const Batch& b = four.next();
    ASSERT_EQ(a.labels, b.labels);
    ASSERT_TRUE(std::ranges::equal(a.images.span(), b.images.span())) << step;
  }
  EXPECT_GT(one.waited_seconds(), 0);
}

TEST(Folder, ADamagedFileEndsTheBatchSourceOnAnyNumberOfThreads) {
  const Folder folder;
  write_part(folder / "train", 2);
  write_part(folder / "test", 1);
  const auto data = load_dataset(options_of(folder)).value();
  Bytes cut = read_plain(folder / "train/cow/100.jpg");
  cut.resize(cut.size() - 60);
  write_plain(folder / "train/cow/100.jpg", cut);
  for (const int threads : {1, 3}) {
    BatchSource::Options options;
    options.global_batch = 6;
    options.share = {0, 6};
    options.last_step = 3;
    options.recipe = make_recipe(*data, {3, 40, 32}).value();
    options.threads = threads;
    BatchSource source(data, options);
    EXPECT_THROW(source.next(), std::runtime_error);
  }
}

}  // namespace
}  // namespace tg::engine::test

#include "engine/data/data_summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/data/class_weights.h"
#include "engine/data/shown_samples.h"
#include "tests/engine/data/pictures.h"

namespace tg::engine::test {
namespace {

constexpr std::uint64_t kReadBatch = 16;

// Classes a, b, ... with so many training and test samples each.
Dataset set_of(const std::vector<int>& train, const std::vector<int>& test) {
  Dataset data;
  data.kind = DatasetKind::kNpy;
  data.train.stored = {3, 32, 32};
  for (std::size_t c = 0; c < train.size(); ++c) {
    data.classes.push_back(std::string(1, static_cast<char>('a' + c)));
    data.train.labels.insert(data.train.labels.end(), static_cast<std::size_t>(train[c]),
                             static_cast<std::uint16_t>(c));
    data.test.labels.insert(data.test.labels.end(), static_cast<std::size_t>(test[c]), static_cast<std::uint16_t>(c));
  }
  return data;
}

Recipe recipe_of(Flip flip = Flip::kNone) {
  Recipe recipe;
  recipe.input = {3, 32, 32};
  recipe.flip = flip;
  return recipe;
}

// The one warning that there is.
std::string warning_of(const Dataset& data, std::uint64_t batch = kReadBatch, const Recipe& recipe = recipe_of()) {
  const DataSummary read = summarize_data(data, recipe, batch, {});
  return read.warnings.size() == 1 ? read.warnings[0] : std::to_string(read.warnings.size()) + " warnings";
}

TEST(DataSummary, HasClassesSamplesShapeAndEpoch) {
  const DataSummary read = summarize_data(set_of({500, 500, 476}, {10, 10, 10}), recipe_of(), 64, {});
  EXPECT_EQ(read.summary, "3 classes, 1,476 + 30 pictures of 3x32x32, 23 steps an epoch");
  EXPECT_TRUE(read.warnings.empty());
  Recipe smaller = recipe_of(Flip::kHorizontal);
  smaller.input = {3, 24, 24};
  EXPECT_EQ(summarize_data(set_of({40}, {4}), smaller, kReadBatch, {.flip = true}).summary,
            "1 class, 40 + 4 pictures of 3x32x32 as 3x24x24, 2.5 steps an epoch, flip horizontal");
  EXPECT_EQ(
      summarize_data(set_of({40}, {4}), smaller, kReadBatch, {.flip = true}).warnings,
      std::vector<std::string>{"there is one class only, a: nothing can be learned; is data-dir the right folder?"});
  Dataset varied = set_of({20, 20}, {2, 2});
  varied.train.stored = {3, 0, 0};
  EXPECT_EQ(summarize_data(varied, recipe_of(), 64, {}).summary,
            "2 classes, 40 + 4 pictures of different sizes as 3x32x32, less than a step an epoch");
}

TEST(DataSummary, WarnsOfClassesWithoutSamples) {
  EXPECT_EQ(warning_of(set_of({20, 20, 20}, {2, 0, 2})),
            "class b has no test samples: the accuracy says nothing of it; hold some back for testing");
  EXPECT_EQ(warning_of(set_of({20, 0, 20}, {2, 0, 2})),
            "class b has no training samples, and the network has an output for each of 3 classes: labels count from 0 "
            "without gaps; renumber them");
  EXPECT_EQ(
      warning_of(set_of({20, 0, 20, 0, 0, 0, 20}, {2, 0, 2, 0, 0, 0, 2})).find("classes b, d, e and 1 more have "), 0u);
}

TEST(DataSummary, WarnsOfLabelsThatCountFromOne) {
  EXPECT_EQ(warning_of(set_of({0, 20, 20}, {0, 2, 2})),
            "no sample has label 0, so the network has an output that nothing trains: labels count from 0; subtract 1 "
            "from each");
}

TEST(DataSummary, WarnsOfClassesThatAreCalledLikeParts) {
  Dataset data = set_of({20, 20}, {2, 2});
  data.kind = DatasetKind::kFolder;
  data.classes = {"Train", "cat"};
  EXPECT_NE(warning_of(data).find("(Train)"), std::string::npos);
}

TEST(DataSummary, WarnsOfUnequalClasses) {
  EXPECT_EQ(
      warning_of(set_of({4000, 12, 39}, {1, 1, 1})),
      "classes are of very unequal size: a has 4,000 training samples, b has 12; class-weights = balanced makes them "
      "count alike");
  EXPECT_TRUE(summarize_data(set_of({99, 10}, {1, 1}), recipe_of(), kReadBatch, {}).warnings.empty());
  EXPECT_TRUE(
      summarize_data(set_of({99, 9}, {1, 1}), recipe_of(), kReadBatch, {.class_weights = true}).warnings.empty());
}

TEST(ClassWeights, HaveTheMeanOneOverTheTrainingSet) {
  const Dataset data = set_of({60, 0, 30, 10}, {1, 1, 1, 1});
  const std::vector<double> balanced = class_weights(data, {}).value();
  EXPECT_EQ(balanced[1], 0) << "nothing of it is trained on";
  EXPECT_DOUBLE_EQ(60 * balanced[0], 100.0 / 3);
  EXPECT_DOUBLE_EQ(30 * balanced[2], 100.0 / 3);
  EXPECT_DOUBLE_EQ(10 * balanced[3], 100.0 / 3);
  const std::vector<double> wished = class_weights(data, {1, 7, 2, 8}).value();  // sum over the set: 200
  for (std::size_t c = 0; c < wished.size(); ++c) EXPECT_DOUBLE_EQ(wished[c], std::vector<double>({1, 7, 2, 8})[c] / 2);
  EXPECT_EQ(
      class_weights(data, {1, 1}).error().message,
      "class-weights has 2 numbers, and the data have 4 classes; give one for each in the order of the labels, or "
      "balanced");
}

TEST(DataSummary, WarnsOfABatchLargerThanTheSet) {
  EXPECT_EQ(warning_of(set_of({20, 20}, {2, 2}), 64),
            "the global batch of 64 is larger than the training set of 40: a step sees samples more than once; "
            "lower global-batch");
}

TEST(DataSummary, WarnsOfUnrequestedFlipsOfAFolder) {
  Dataset data = set_of({20, 20}, {2, 2});
  data.kind = DatasetKind::kFolder;
  const Recipe flips = recipe_of(Flip::kHorizontal);
  EXPECT_NE(warning_of(data, kReadBatch, flips).find("flip = none leaves it out"), std::string::npos);
  EXPECT_TRUE(summarize_data(data, flips, kReadBatch, {.flip = true}).warnings.empty());
}

TEST(ShownSamples, AreTheFirstOfARunBeforeNormalization) {
  Dataset data;
  data.train.stored = {1, 2, 200};
  data.classes = {"a", "b"};
  for (int i = 0; i < 10; ++i) {
    data.train.labels.push_back(static_cast<std::uint16_t>(i % 2));
    data.train.pixels.insert(data.train.pixels.end(), 400, static_cast<std::uint8_t>(20 * i));
  }
  Recipe recipe;
  recipe.input = {1, 2, 200};
  recipe.normalization = Normalization::kSymmetric;
  const std::vector<ShownSample> samples = shown_samples(data, recipe, 7, 4);
  ASSERT_EQ(samples.size(), 4u);
  SampleStream stream(7, 10);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t index = stream.sample(i);
    EXPECT_EQ(samples[i].label, index % 2);
    EXPECT_EQ(samples[i].shape, (ImageShape{1, 1, 66})) << "a third of it";
    for (const std::uint8_t pixel : samples[i].pixels) EXPECT_EQ(pixel, 20 * index);
  }
  EXPECT_EQ(shown_samples(data, recipe, 7, 100).size(), 10u);
  data.test = data.train;
  const std::optional<ShownSample> tested = shown_test_sample(data, recipe, 3);
  ASSERT_TRUE(tested);
  EXPECT_EQ(tested->label, 1);
  for (const std::uint8_t pixel : tested->pixels) EXPECT_EQ(pixel, 60);
  recipe.input = {1, 1, 400};
  EXPECT_TRUE(shown_samples(data, recipe, 7, 4).empty()) << "features";
  EXPECT_FALSE(shown_test_sample(data, recipe, 3));
}

TEST(DataSummary, NamesSkippedFiles) {
  const Folder folder;
  for (const char* name :
       {"train/a/1.png", "train/a/2.png", "train/b/3.png", "train/b/4.png", "test/a/5.png", "test/b/6.png"})
    write_plain(folder / name, to_png(ramp(3, 8, 8)));
  write_plain(folder / "train/b/x.webp", {1});
  write_plain(folder / "train/a/notes.txt", {1});
  write_plain(folder / "test/a/y.webp", {1});
  write_plain(folder / "train/a/.hidden", {1});
  DatasetOptions options;
  options.kind = DatasetKind::kFolder;
  options.directory = folder.path();
  const auto data = load_dataset(options);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->left_out.count, 3u);
  const DataSummary read = summarize_data(**data, recipe_of(), 4, {});
  EXPECT_NE(read.summary.find("3 files left out (train/a/notes.txt, ...: not a JPEG or PNG)"), std::string::npos)
      << read.summary;
}

}  // namespace
}  // namespace tg::engine::test

#include "engine/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "engine/data/draws.h"
#include "engine/data/recipe/colour.h"
#include "engine/data/recipe/make_input.h"
#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

constexpr ImageShape kStored{3, 32, 32};
constexpr ImageShape kInput{3, 24, 24};

std::vector<std::uint8_t> image(std::size_t salt, const ImageShape& shape = kStored) {
  std::vector<std::uint8_t> pixels(shape.elements());
  for (std::size_t at = 0; at < pixels.size(); ++at) pixels[at] = pattern(salt, at);
  return pixels;
}

Dataset images_of(DatasetKind kind, std::size_t count, const ImageShape& shape = kStored) {
  Dataset data;
  data.kind = kind;
  data.train.stored = data.test.stored = shape;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pixels = image(i, shape);
    for (ImageSet* set : {&data.train, &data.test}) {
      set->pixels.insert(set->pixels.end(), pixels.begin(), pixels.end());
      set->labels.push_back(static_cast<std::uint16_t>(i % 10));
    }
  }
  return data;
}

Dataset of_pixels(DatasetKind kind, const ImageShape& shape, std::vector<std::uint8_t> pixels) {
  Dataset data;
  data.kind = kind;
  data.train.stored = data.test.stored = shape;
  data.train.labels = data.test.labels = {0};
  data.train.pixels = pixels;
  data.test.pixels = std::move(pixels);
  return data;
}

std::vector<float> evaluated(const Dataset& data, const Recipe& recipe, std::size_t index = 0) {
  std::vector<float> out(recipe.input.elements());
  Scratch scratch;
  EXPECT_TRUE(make_input(data.test, index, recipe, nullptr, scratch, out).ok());
  return out;
}

std::vector<float> trained(const Dataset& data, const Recipe& recipe, std::uint64_t position, std::size_t index = 0) {
  std::vector<float> out(recipe.input.elements());
  Scratch scratch;
  Draws draws(1, DrawDomain::kAugment, position);
  EXPECT_TRUE(make_input(data.train, index, recipe, &draws, scratch, out).ok());
  return out;
}

std::string refusal(const Dataset& data, const ImageShape& input, const RecipeOptions& options = {}) {
  const auto recipe = make_recipe(data, input, options);
  return recipe.ok() ? "no error" : recipe.error().message;
}

// What the paper's code does to CIFAR-10, as this program did it before there were recipes: the floats may not change
// by a bit, or digests and accuracies that were published would.
namespace paper {

struct Augmentation {
  int top = 4, left = 4;
  bool flip = false;
  double brightness = 0, contrast = 1;
};

Augmentation draw(std::uint64_t seed, std::uint64_t position) {
  Draws draws(seed, DrawDomain::kAugment, position);
  Augmentation how;
  how.top = static_cast<int>(draws.below(9));
  how.left = static_cast<int>(draws.below(9));
  how.flip = draws.below(2) == 1;
  how.brightness = draws.between(-63.0 / 255.0, 63.0 / 255.0);
  how.contrast = draws.between(0.2, 1.8);
  return how;
}

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

std::vector<float> augment(const std::vector<std::uint8_t>& pixels, const Augmentation& how) {
  std::vector<float> out;
  for (int c = 0; c < 3; ++c) {
    for (int y = 0; y < 24; ++y) {
      for (int x = 0; x < 24; ++x) {
        const int at = (c * 32 + how.top + y) * 32 + how.left + (how.flip ? 23 - x : x);
        out.push_back(static_cast<float>(pixels[static_cast<std::size_t>(at)]) / 255.0f);
      }
    }
    const std::span<float> channel = std::span(out).last(576);
    for (float& v : channel) v = static_cast<float>(v + how.brightness);
    const double mean = mean_of(channel);
    for (float& v : channel) v = static_cast<float>((v - mean) * how.contrast + mean);
  }
  const double mean = mean_of(out);
  double squares = 0;
  for (const float v : out) squares += (v - mean) * (v - mean);
  const double n = static_cast<double>(out.size());
  const double divisor = std::max(std::sqrt(squares / n), 1.0 / std::sqrt(n));
  for (float& v : out) v = static_cast<float>((v - mean) / divisor);
  return out;
}

}  // namespace paper

TEST(Recipe, CifarsFloatsAreThePapersToTheBit) {
  const Dataset data = images_of(DatasetKind::kCifar10, 7);
  const Recipe recipe = make_recipe(data, kInput).value();
  for (std::uint64_t position = 0; position < 300; ++position) {
    const std::size_t index = position % 7;
    ASSERT_EQ(trained(data, recipe, position, index), paper::augment(image(index), paper::draw(1, position)))
        << position;
    ASSERT_EQ(evaluated(data, recipe, index), paper::augment(image(index), {})) << index;
  }
}

TEST(Recipe, MnistsFloatsAreTheOldOnesToTheBit) {
  std::vector<std::uint8_t> pixels(784);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
  const Dataset data = of_pixels(DatasetKind::kMnist, {1, 28, 28}, pixels);
  const auto out = evaluated(data, make_recipe(data, {1, 28, 28}).value());
  EXPECT_EQ(out, trained(data, make_recipe(data, {1, 28, 28}).value(), 5));
  for (std::size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i], (static_cast<float>(pixels[i]) / 255.0f - 0.5f) * 2.0f) << i;
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_EQ(out[255], 1.0f);
}

// The whole range of crops is drawn and nothing outside it, each about as often as its probability says.
TEST(Recipe, WindowsAreWithinBoundsAndUniform) {
  constexpr int kDraws = 20'000;
  std::vector<std::uint8_t> pixels(kStored.elements());
  for (std::size_t i = 0; i < 1024; ++i) {  // the first two channels are line and column
    pixels[i] = static_cast<std::uint8_t>(i / 32);
    pixels[1024 + i] = static_cast<std::uint8_t>(i % 32);
  }
  const Dataset data = of_pixels(DatasetKind::kCifar10, kStored, pixels);
  RecipeOptions options;
  options.colour = Colour::kNone;
  options.normalization = Normalization::kNone;
  const Recipe recipe = make_recipe(data, kInput, options).value();
  int tops[9] = {}, lefts[9] = {}, flips = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const auto out = trained(data, recipe, i);
    const int top = static_cast<int>(out[0] * 255 + 0.5f), first = static_cast<int>(out[576] * 255 + 0.5f);
    const bool flip = out[577] < out[576];
    const int left = flip ? first - 23 : first;
    ASSERT_TRUE(top >= 0 && top <= 8 && left >= 0 && left <= 8) << top << " " << left;
    ++tops[top];
    ++lefts[left];
    flips += flip ? 1 : 0;
  }
  EXPECT_NEAR(flips, kDraws / 2, 300);  // 4 deviations of 71
  for (int i = 0; i < 9; ++i) {
    EXPECT_NEAR(tops[i], kDraws / 9, 180);  // 4 deviations of 44
    EXPECT_NEAR(lefts[i], kDraws / 9, 180);
  }
}

TEST(Recipe, PerImageGivesMeanZeroDeviationOne) {
  const Dataset data = images_of(DatasetKind::kCifar10, 9);
  const Recipe recipe = make_recipe(data, kInput).value();
  for (std::uint64_t position = 0; position < 20; ++position) {
    const auto out = trained(data, recipe, position, position % 9);
    const double mean = std::accumulate(out.begin(), out.end(), 0.0) / static_cast<double>(out.size());
    double squares = 0;
    for (const float v : out) squares += (v - mean) * (v - mean);
    EXPECT_NEAR(mean, 0, 1e-5);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(out.size())), 1, 1e-4);
  }
}

// Deviation below 1/sqrt(1728): the adjusted deviation takes its place.
TEST(Recipe, FaintImageIsDividedByTheAdjustedDeviation) {
  std::vector<std::uint8_t> pixels(kStored.elements());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(100 + i % 2);
  const Dataset faint = of_pixels(DatasetKind::kCifar10, kStored, pixels);
  const auto out = evaluated(faint, make_recipe(faint, kInput).value());
  const double expected = 0.5 / 255 * std::sqrt(1728.0);
  EXPECT_NEAR(std::abs(out[0]), expected, 1e-4);
  EXPECT_NEAR(std::abs(out[1]), expected, 1e-4);
  const Dataset uniform = of_pixels(DatasetKind::kCifar10, kStored, std::vector<std::uint8_t>(kStored.elements(), 200));
  for (const float v : evaluated(uniform, make_recipe(uniform, kInput).value())) ASSERT_NEAR(v, 0, 1e-4);
}

// However many members split the global batch, sample p of the stream gives the same floats.
TEST(Recipe, TrainingBatchesDoNotDependOnTheMembers) {
  const Dataset data = images_of(DatasetKind::kCifar10, 13);
  const Recipe recipe = make_recipe(data, kInput).value();
  constexpr std::uint64_t kSeed = 42, kGlobal = 24, kStep = 3;  // positions 72..95 cross the end of epoch 5
  Batch whole;
  whole.count = kGlobal;
  SampleStream whole_stream(kSeed, 13);
  fill_training_batch(data, recipe, whole_stream, kSeed, kStep * kGlobal, whole);
  for (const std::size_t members : {2u, 3u, 5u, 24u}) {
    for (const Share& share : split(kGlobal, std::vector<std::uint16_t>(members, 1))) {
      Batch part;
      part.count = share.count;
      SampleStream stream(kSeed, 13);
      fill_training_batch(data, recipe, stream, kSeed, kStep * kGlobal + share.first, part);
      for (std::size_t i = 0; i < part.labels.size(); ++i) ASSERT_EQ(part.labels[i], whole.labels[share.first + i]);
      const auto expected = whole.images.span().subspan(share.first * kInput.elements(), part.images.size());
      ASSERT_TRUE(std::ranges::equal(part.images.span(), expected));
    }
  }
}

TEST(Recipe, SameSampleInAnotherEpochLooksDifferent) {
  const Dataset data = images_of(DatasetKind::kCifar10, 1);
  Batch batch;
  batch.count = 2;
  SampleStream stream(1, 1);
  fill_training_batch(data, make_recipe(data, kInput).value(), stream, 1, 0, batch);
  const auto all = batch.images.span();
  EXPECT_FALSE(std::ranges::equal(all.first(kInput.elements()), all.last(kInput.elements())));
}

TEST(Recipe, EvaluationIsTheSameOnAnyNumberOfThreads) {
  const Dataset data = images_of(DatasetKind::kCifar10, 9);
  const Recipe recipe = make_recipe(data, kInput).value();
  Batch one, three;
  one.count = three.count = 5;
  fill_evaluation_batch(data, recipe, 3, one);
  fill_evaluation_batch(data, recipe, 3, three, 3);
  EXPECT_EQ(one.labels, (std::vector<std::int32_t>{3, 4, 5, 6, 7}));
  EXPECT_EQ(one.labels, three.labels);
  EXPECT_TRUE(std::ranges::equal(one.images.span(), three.images.span()));
}

TEST(Recipe, RefusesModelsThatDoNotFit) {
  const Dataset data = images_of(DatasetKind::kCifar10, 10);
  EXPECT_TRUE(make_recipe(data, kInput).ok());
  expect_text(refusal(data, {1, 28, 28}), "has images of 3x32x32 and the model takes 1x28x28");
  expect_text(refusal(data, {3, 33, 24}), "3x33x24");
  expect_text(refusal(images_of(DatasetKind::kMnist, 1, {1, 28, 28}), {1, 24, 24}), "1x24x24");
  const Status classes = check_labels(data, 9);
  ASSERT_FALSE(classes.ok());
  expect_text(classes.error().message, "label 9");
}

TEST(Recipe, TheJobOverridesTheData) {
  const Dataset data = images_of(DatasetKind::kCifar10, 10);
  const Recipe usual = make_recipe(data, kStored).value();
  EXPECT_EQ(usual.crop, Crop::kWindow);
  EXPECT_EQ(usual.padding, 4);
  EXPECT_EQ(usual.flip, Flip::kHorizontal);
  EXPECT_EQ(usual.colour, Colour::kNone);
  EXPECT_EQ(usual.normalization, Normalization::kMeasured);
  RecipeOptions options;
  options.crop = Crop::kNone;
  options.flip = Flip::kNone;
  options.colour = Colour::kJitter;
  options.colour_strength = 0.25;
  options.normalization = Normalization::kGiven;
  options.mean = {0.5};
  options.deviation = {0.25, 0.5, 1};
  const Recipe given = make_recipe(data, kStored, options).value();
  EXPECT_EQ(given.crop, Crop::kNone);
  EXPECT_EQ(given.padding, 0);
  EXPECT_EQ(given.flip, Flip::kNone);
  EXPECT_EQ(given.colour_strength, 0.25);
  EXPECT_EQ(given.mean, (std::vector<float>{0.5f, 0.5f, 0.5f}));
  EXPECT_EQ(given.deviation, (std::vector<float>{0.25f, 0.5f, 1.0f}));
  options.mean = {1, 2};
  expect_text(refusal(data, kStored, options), "needs mean with one number, or 3, and it has 2");
  options.mean = {1};
  options.deviation = {1e-60};  // 0 in float32
  expect_text(refusal(data, kStored, options), "deviations above 0");
  RecipeOptions padded;
  padded.crop = Crop::kNone;
  padded.padding = 4;
  expect_text(refusal(data, kStored, padded), "does not use crop-padding");
  RecipeOptions unused;
  unused.least_area = 0.05;
  expect_text(refusal(data, kStored, unused), "with crop = window does not use least-area");
  unused = {};
  unused.colour_hue = 0.1;
  expect_text(refusal(data, kStored, unused), "with colour = none does not use colour-hue");
  RecipeOptions small;
  small.resize = 20;
  expect_text(refusal(data, kInput, small), "set resize to that or more");
}

TEST(Recipe, PaddingIsBlackAndWindowsReachIntoIt) {
  const Dataset data = of_pixels(DatasetKind::kCifar10, {3, 8, 8}, std::vector<std::uint8_t>(192, 255));
  RecipeOptions options;
  options.normalization = Normalization::kNone;
  options.padding = 2;
  options.crop = Crop::kWindow;
  const Recipe recipe = make_recipe(data, {3, 8, 8}, options).value();
  int seen[5] = {};  // black lines at the top, of 0 to 2, and at the bottom
  for (std::uint64_t position = 0; position < 200; ++position) {
    const auto out = trained(data, recipe, position);
    int top = 0, bottom = 0;
    const auto black = [&](int y) {
      return std::ranges::all_of(std::span(out).subspan(static_cast<std::size_t>(8 * y), 8),
                                 [](float v) { return v == 0; });
    };
    while (top < 8 && black(top)) ++top;
    while (bottom < 8 && black(7 - bottom)) ++bottom;
    ASSERT_TRUE((top == 0 || bottom == 0) && top <= 2 && bottom <= 2) << top << " " << bottom;
    ++seen[2 + top - bottom];
  }
  for (const int count : seen) EXPECT_NEAR(count, 40, 25);
}

TEST(Recipe, LongPicturesAreNotMadeLargerThanAnyMayBe) {
  const Dataset data = of_pixels(DatasetKind::kFolder, {3, 10, 700}, std::vector<std::uint8_t>(21'000, 9));
  RecipeOptions options;
  options.normalization = Normalization::kNone;
  options.resize = 1024;
  options.crop = Crop::kWindow;
  const Recipe recipe = make_recipe(data, {3, 28, 28}, options).value();
  std::vector<float> out(recipe.input.elements());
  Scratch scratch;
  Draws draws(1, DrawDomain::kAugment, 0);
  const Status made = make_input(data.train, 0, recipe, &draws, scratch, out);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().kind, ErrorKind::kCorrupt);
  expect_text(made.error().message, "its 700x10 pixels would become 71680x1024");
  EXPECT_TRUE(scratch.resized.pixels.empty());
  evaluated(data, recipe);  // makes its middle only
}

TEST(Recipe, AreasAreInsideAndOfTheSizeThatIsPromised) {
  double least = 1, most = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Draws draws(3, DrawDomain::kAugment, i);
    const int height = 40 + static_cast<int>(i % 7) * 30, width = 200;
    const Area area = draw_area(height, width, 0.08, draws);
    ASSERT_TRUE(area.top >= 0 && area.left >= 0 && area.height >= 1 && area.width >= 1);
    ASSERT_TRUE(area.top + area.height <= height && area.left + area.width <= width);
    const double ratio = static_cast<double>(area.width) / area.height;
    ASSERT_TRUE(ratio > 0.70 && ratio < 1.42) << area.width << "x" << area.height;  // rounded to whole pixels
    const double share = static_cast<double>(area.width) * area.height / (height * width);
    least = std::min(least, share);
    most = std::max(most, share);
  }
  EXPECT_NEAR(least, 0.08, 0.01);
  EXPECT_GT(most, 0.9);
  Draws draws(3, DrawDomain::kAugment, 0);
  EXPECT_EQ(draw_area(1, 100, 0.08, draws), (Area{0, 49, 1, 1}));  // nothing drawn fits: the middle
}

TEST(Recipe, AreasAreNotBelowTheLeast) {
  for (std::uint64_t i = 0; i < 200; ++i) {
    Draws draws(3, DrawDomain::kAugment, i);
    const Area area = draw_area(200, 200, 0.9, draws);
    ASSERT_GT(area.width * area.height, 0.88 * 200 * 200) << area.width << "x" << area.height;
  }
}

// A resize to a square squeezes the longer side; what is uniform along it stays where it was in the other.
TEST(Recipe, ASquareHasTheWholePicture) {
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 24; ++x) pixels.push_back(static_cast<std::uint8_t>(10 * (x / 3)));
  const Dataset data = of_pixels(DatasetKind::kFolder, {1, 8, 24}, pixels);
  RecipeOptions options;
  options.crop = Crop::kNone;
  options.normalization = Normalization::kNone;
  options.resize = 8;
  const Recipe kept = make_recipe(data, {1, 8, 8}, options).value();
  EXPECT_EQ(evaluated(data, kept)[0], 20.0F / 255.0F) << "its middle begins at column 8";
  options.resize_shape = ResizeShape::kSquare;
  const Recipe squashed = make_recipe(data, {1, 8, 8}, options).value();
  const std::vector<float> whole = evaluated(data, squashed);
  EXPECT_LT(whole[0], 5.0F / 255.0F);
  EXPECT_GT(whole[7], 65.0F / 255.0F);
  EXPECT_EQ(trained(data, squashed, 0), whole);
  EXPECT_EQ(nlohmann::json::parse(recipe_json(squashed))["resize-shape"].get<std::string>(), "square");
  options.resize = 0;
  expect_text(refusal(data, {1, 8, 8}, options), "is not resized, and resize-shape says how");
}

TEST(Recipe, AreaOfTheWholeEqualsAResize) {
  // Any area of a uniform picture is that picture; of a ramp it stays within its values.
  const Dataset data = of_pixels(DatasetKind::kCifar10, {3, 32, 32}, std::vector<std::uint8_t>(3072, 77));
  RecipeOptions options;
  options.crop = Crop::kArea;
  options.colour = Colour::kNone;
  options.normalization = Normalization::kNone;
  const Recipe recipe = make_recipe(data, {3, 16, 16}, options).value();
  for (std::uint64_t position = 0; position < 50; ++position) {
    for (const float v : trained(data, recipe, position)) ASSERT_EQ(v, 77.0f / 255.0f);
  }
}

TEST(Recipe, MeasuredIsMeanAndDeviationOfTheTrainingSet) {
  Dataset data = images_of(DatasetKind::kNpy, 50, {3, 5, 4});
  const Recipe recipe = make_recipe(data, {3, 5, 4}, {}, 3).value();
  ASSERT_EQ(recipe.mean.size(), 3u);
  for (std::size_t c = 0; c < 3; ++c) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 50; ++i) {
      for (std::size_t at = 20 * c; at < 20 * (c + 1); ++at) sum += pattern(i, at) / 255.0;
    }
    const double mean = sum / 1000;
    for (std::size_t i = 0; i < 50; ++i) {
      for (std::size_t at = 20 * c; at < 20 * (c + 1); ++at) squares += std::pow(pattern(i, at) / 255.0 - mean, 2);
    }
    EXPECT_NEAR(recipe.mean[c], mean, 1e-6);
    EXPECT_NEAR(recipe.deviation[c], std::sqrt(squares / 1000), 1e-6);
  }
  const auto out = evaluated(data, recipe, 4);
  EXPECT_EQ(out[25], (static_cast<float>(pattern(4, 25)) / 255.0f - recipe.mean[1]) / recipe.deviation[1]);
  // A channel that never changes is not divided by zero.
  const Dataset flat = of_pixels(DatasetKind::kNpy, {1, 2, 2}, {9, 9, 9, 9});
  EXPECT_EQ(make_recipe(flat, {1, 2, 2}).value().deviation, std::vector<float>{1.0f});
}

TEST(Recipe, FloatsAreNormalizedPerFeature) {
  Dataset data;
  data.kind = DatasetKind::kNpy;
  data.train.stored = data.test.stored = {2, 1, 1};
  data.train.values = {1e6f, 0, 1e6f + 2, 4};  // a small deviation about a large mean
  data.train.labels = {0, 1};
  data.test.values = {1e6f + 1, 4};
  data.test.labels = {0};
  const Recipe recipe = make_recipe(data, {2, 1, 1}).value();
  EXPECT_TRUE(recipe.floats);
  EXPECT_EQ(recipe.mean, (std::vector<float>{1e6f + 1, 2}));
  EXPECT_EQ(recipe.deviation, (std::vector<float>{1, 2}));
  EXPECT_EQ(evaluated(data, recipe), (std::vector<float>{0, 1}));
  RecipeOptions options;
  options.flip = Flip::kHorizontal;
  expect_text(refusal(data, {2, 1, 1}, options), "for pictures of bytes");
  options = {};
  options.normalization = Normalization::kSymmetric;
  expect_text(refusal(data, {2, 1, 1}, options), "none, given or measured, not symmetric");
}

TEST(Recipe, JitterKeepsGreyGreyAndStaysInRange) {
  std::vector<std::uint8_t> pixels(kStored.elements());
  for (std::size_t i = 0; i < 1024; ++i) pixels[i] = pixels[1024 + i] = pixels[2048 + i] = pattern(1, i);
  const Dataset data = of_pixels(DatasetKind::kCifar10, kStored, pixels);
  RecipeOptions options;
  options.crop = Crop::kNone;
  options.flip = Flip::kNone;
  options.colour = Colour::kJitter;
  options.normalization = Normalization::kNone;
  const Recipe recipe = make_recipe(data, kStored, options).value();
  bool changes = false;
  for (std::uint64_t position = 0; position < 20; ++position) {
    const auto out = trained(data, recipe, position);
    for (std::size_t i = 0; i < 1024; ++i) {
      ASSERT_TRUE(out[i] >= 0 && out[i] <= 1);
      ASSERT_NEAR(out[i], out[1024 + i], 1e-5);
      changes = changes || std::abs(out[i] - static_cast<float>(pixels[i]) / 255.0f) > 0.1f;
    }
  }
  EXPECT_TRUE(changes);
}

// Largest and smallest of a pixel's values stay; all the way round is where it began.
TEST(Recipe, HuesTurn) {
  Recipe recipe;
  recipe.input = {3, 1, 6};
  recipe.colour = Colour::kJitter;
  const float ramp[3][6] = {{0.75F, 0.75F, 0.5F, 0.25F, 0.25F, 0.25F},
                            {0.25F, 0.5F, 0.75F, 0.75F, 0.5F, 0.25F},
                            {0.25F, 0.25F, 0.25F, 0.5F, 0.75F, 0.25F}};
  std::vector<std::uint8_t> pixels;
  for (const auto& channel : ramp)
    for (const float value : channel) pixels.push_back(static_cast<std::uint8_t>(value * 252));
  const auto turned = [&](double hue) {
    std::vector<float> out(18);
    const ColourDraws draws{.brightness = 1, .hue = hue};
    to_floats(view_of(pixels.data(), recipe.input), recipe, &draws, out);
    return out;
  };
  const std::vector<float> plain = turned(0), third = turned(1.0 / 3), back = turned(-1.0 / 3), half = turned(0.5);
  for (std::size_t x = 0; x < 6; ++x) {
    for (std::size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(third[(c + 1) % 3 * 6 + x], plain[c * 6 + x], 1e-6) << "red becomes green " << x;
      EXPECT_NEAR(back[c * 6 + x], plain[(c + 1) % 3 * 6 + x], 1e-6) << x;
      const float ends =
          std::max({plain[x], plain[6 + x], plain[12 + x]}) + std::min({plain[x], plain[6 + x], plain[12 + x]});
      EXPECT_NEAR(half[c * 6 + x], ends - plain[c * 6 + x], 1e-6) << "the opposite colour " << x;
    }
  }
}

TEST(Recipe, AHueIsDrawnLast) {
  Recipe recipe;
  recipe.colour = Colour::kJitter;
  const auto drawn = [&] {
    Draws draws(3, DrawDomain::kAugment, 5);
    return draw_colour(recipe, draws);
  };
  const ColourDraws without = drawn();
  recipe.colour_hue = 0.2;
  const ColourDraws with = drawn();
  EXPECT_EQ(without.saturation, with.saturation) << "what jobs without it draw does not change";
  EXPECT_EQ(without.hue, 0);
  EXPECT_NE(with.hue, 0);
  EXPECT_LE(std::abs(with.hue), 0.2);
}

TEST(Recipe, JsonHasAllNumbersExactly) {
  const Dataset data = images_of(DatasetKind::kCifar10, 10);
  const Recipe recipe = make_recipe(data, kStored).value();
  const auto json = nlohmann::json::parse(recipe_json(recipe));
  EXPECT_EQ(json["input"].get<std::vector<int>>(), (std::vector<int>{3, 32, 32}));
  EXPECT_EQ(json["samples"].get<std::string>(), "bytes");
  EXPECT_EQ(json["normalization"].get<std::string>(), "measured");
  EXPECT_EQ(json["resize"].get<int>(), 0);
  EXPECT_EQ(json["training"]["padding"].get<int>(), 4);
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(json["mean"][c].get<float>(), recipe.mean[c]);
}

TEST(Recipe, InputFollowsTheDataUnlessTheyVary) {
  const auto cifar = [](ModelKind model) { return input_of(DatasetKind::kCifar10, {3, 32, 32}, model, 0); };
  EXPECT_EQ(cifar(ModelKind::kResnet20), (ImageShape{3, 32, 32}));
  EXPECT_EQ(cifar(ModelKind::kLenet), (ImageShape{3, 32, 32}));
  EXPECT_EQ(cifar(ModelKind::kCifarnet), (ImageShape{3, 24, 24})) << "the paper's windows";
  const auto folder = [](const ImageShape& stored, ModelKind model, int size) {
    return input_of(DatasetKind::kFolder, stored, model, size);
  };
  EXPECT_EQ(folder({3, 0, 0}, ModelKind::kAlexnet, 0), (ImageShape{3, 224, 224}));
  EXPECT_EQ(folder({3, 0, 0}, ModelKind::kResnet20, 0), (ImageShape{3, 32, 32}));
  EXPECT_EQ(folder({3, 0, 0}, ModelKind::kResnet20, 64), (ImageShape{3, 64, 64}));
  EXPECT_EQ(folder({1, 28, 28}, ModelKind::kMlp, 0), (ImageShape{1, 28, 28}));
  EXPECT_EQ(folder({1, 28, 28}, ModelKind::kMlp, 32), (ImageShape{1, 32, 32}));
  EXPECT_EQ(input_of(DatasetKind::kNpy, {7, 1, 1}, ModelKind::kMlp, 0), (ImageShape{7, 1, 1}));
}

}  // namespace
}  // namespace tg::engine::test

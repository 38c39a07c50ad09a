#include "engine/data/augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

constexpr ImageShape kStored{3, 32, 32};
constexpr ImageShape kInput{3, 24, 24};

std::vector<std::uint8_t> image(std::size_t salt) {
  std::vector<std::uint8_t> pixels(kStored.elements());
  for (std::size_t at = 0; at < pixels.size(); ++at) pixels[at] = pattern(salt, at);
  return pixels;
}

std::vector<float> augmented(const std::vector<std::uint8_t>& pixels, const Augmentation& how) {
  std::vector<float> out(kInput.elements());
  augment(pixels, kStored, kInput, how, out);
  return out;
}

TEST(Augment, SymmetricMapsTheEnds) {
  const std::vector<std::uint8_t> pixels = {0, 255, 51};
  std::vector<float> out(3);
  symmetric(pixels, out);
  EXPECT_EQ(out[0], -1.0f);
  EXPECT_EQ(out[1], 1.0f);
  EXPECT_NEAR(out[2], -0.6f, 1e-6);
}

// The whole range is drawn and nothing outside it, each choice about as often as its probability says.
TEST(Augment, DrawsAreWithinBoundsAndUniform) {
  constexpr int kDraws = 20'000;
  int flips = 0, tops[9] = {}, lefts[9] = {};
  double low_brightness = 1, high_brightness = -1, low_contrast = 9, high_contrast = 0, contrast_sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Augmentation how = draw_augmentation(1, static_cast<std::uint64_t>(i), kStored, kInput);
    ASSERT_TRUE(how.top >= 0 && how.top <= 8 && how.left >= 0 && how.left <= 8);
    ++tops[how.top];
    ++lefts[how.left];
    flips += how.flip ? 1 : 0;
    low_brightness = std::min(low_brightness, how.brightness);
    high_brightness = std::max(high_brightness, how.brightness);
    low_contrast = std::min(low_contrast, how.contrast);
    high_contrast = std::max(high_contrast, how.contrast);
    contrast_sum += how.contrast;
  }
  EXPECT_NEAR(flips, kDraws / 2, 300);  // 4 deviations of 71
  for (int i = 0; i < 9; ++i) {
    EXPECT_NEAR(tops[i], kDraws / 9, 180);  // 4 deviations of 44
    EXPECT_NEAR(lefts[i], kDraws / 9, 180);
  }
  EXPECT_GE(low_brightness, -63.0 / 255);
  EXPECT_LT(high_brightness, 63.0 / 255);
  EXPECT_LT(low_brightness, -0.24);
  EXPECT_GT(high_brightness, 0.24);
  EXPECT_GE(low_contrast, 0.2);
  EXPECT_LT(high_contrast, 1.8);
  EXPECT_LT(low_contrast, 0.21);
  EXPECT_GT(high_contrast, 1.79);
  EXPECT_NEAR(contrast_sum / kDraws, 1.0, 0.015);  // deviation of the mean 0.0033
}

TEST(Augment, StandardizesToMeanZeroDeviationOne) {
  for (std::uint64_t position = 0; position < 20; ++position) {
    const auto out = augmented(image(position), draw_augmentation(9, position, kStored, kInput));
    const double mean = std::accumulate(out.begin(), out.end(), 0.0) / out.size();
    double squares = 0;
    for (const float v : out) squares += (v - mean) * (v - mean);
    EXPECT_NEAR(mean, 0, 1e-5);
    EXPECT_NEAR(std::sqrt(squares / out.size()), 1, 1e-4);
  }
}

TEST(Augment, UniformImageGivesZeros) {
  const auto out = augmented(std::vector<std::uint8_t>(kStored.elements(), 200), centre_crop(kStored, kInput));
  for (const float v : out) ASSERT_NEAR(v, 0, 1e-4);
}

// Deviation below 1/sqrt(1728): the adjusted deviation takes its place.
TEST(Augment, FaintImageIsDividedByTheAdjustedDeviation) {
  std::vector<std::uint8_t> pixels(kStored.elements());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(100 + i % 2);
  const auto out = augmented(pixels, centre_crop(kStored, kInput));
  const double expected = 0.5 / 255 * std::sqrt(1728.0);
  EXPECT_NEAR(std::abs(out[0]), expected, 1e-4);
  EXPECT_NEAR(std::abs(out[1]), expected, 1e-4);
}

// Without brightness and contrast the output is an affine map of the crop: two pixels fix it, all others follow.
TEST(Augment, CropAndFlipTakeTheRightPixels) {
  const auto pixels = image(3);
  for (const bool flip : {false, true}) {
    Augmentation how;
    how.top = 5;
    how.left = 2;
    how.flip = flip;
    const auto out = augmented(pixels, how);
    const auto source = [&](int c, int y, int x) {
      return pixels[static_cast<std::size_t>((c * 32 + 5 + y) * 32 + 2 + (flip ? 23 - x : x))] / 255.0;
    };
    std::size_t other = 1;
    while (std::abs(source(0, 0, static_cast<int>(other)) - source(0, 0, 0)) < 0.2) ++other;
    const double slope = (out[other] - out[0]) / (source(0, 0, static_cast<int>(other)) - source(0, 0, 0));
    const double offset = out[0] - slope * source(0, 0, 0);
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 24; ++y) {
        for (int x = 0; x < 24; ++x) {
          ASSERT_NEAR(out[static_cast<std::size_t>((c * 24 + y) * 24 + x)], slope * source(c, y, x) + offset, 1e-4);
        }
      }
    }
  }
}

TEST(Augment, ContrastStretchesEachChannelAboutItsMean) {
  // Channels of different means: contrast leaves the means and so changes the image after standardization too.
  std::vector<std::uint8_t> pixels(kStored.elements());
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(60 * (i / 1024) + (i % 2) * 40);
  Augmentation weak = centre_crop(kStored, kInput), strong = weak;
  weak.contrast = 0.5;
  strong.contrast = 1.5;
  const auto a = augmented(pixels, weak), b = augmented(pixels, strong);
  const auto ratio = [](const std::vector<float>& v) { return (v[1] - v[0]) / (v[2 * 576] - v[0]); };
  EXPECT_NEAR(ratio(b) / ratio(a), 3, 1e-4);  // the steps inside a channel grow threefold, those between them not
}

Dataset cifar_of(std::size_t count) {
  Dataset data;
  data.kind = DatasetKind::kCifar10;
  data.preprocessing = Preprocessing::kCifarTraining24;
  data.train.stored = data.test.stored = kStored;
  for (std::size_t i = 0; i < count; ++i) {
    const auto pixels = image(i);
    for (ImageSet* set : {&data.train, &data.test}) {
      set->pixels.insert(set->pixels.end(), pixels.begin(), pixels.end());
      set->labels.push_back(static_cast<std::uint8_t>(i % 10));
    }
  }
  return data;
}

// However many members split the global batch, sample p of the stream gives the same floats.
TEST(Augment, TrainingBatchesDoNotDependOnTheMembers) {
  const Dataset data = cifar_of(13);
  constexpr std::uint64_t kSeed = 42, kGlobal = 24, kStep = 3;  // positions 72..95 cross the end of epoch 5
  Batch whole;
  whole.count = kGlobal;
  SampleStream whole_stream(kSeed, 13);
  fill_training_batch(data, whole_stream, kSeed, kStep * kGlobal, kInput, whole);
  for (const std::size_t members : {2u, 3u, 5u, 24u}) {
    for (const Share& share : split(kGlobal, std::vector<std::uint16_t>(members, 1))) {
      Batch part;
      part.count = share.count;
      SampleStream stream(kSeed, 13);
      fill_training_batch(data, stream, kSeed, kStep * kGlobal + share.first, kInput, part);
      for (std::size_t i = 0; i < part.labels.size(); ++i) ASSERT_EQ(part.labels[i], whole.labels[share.first + i]);
      const auto expected = whole.images.span().subspan(share.first * kInput.elements(), part.images.size());
      ASSERT_TRUE(std::ranges::equal(part.images.span(), expected));
    }
  }
}

TEST(Augment, SameSampleInAnotherEpochLooksDifferent) {
  const Dataset data = cifar_of(1);
  Batch batch;
  batch.count = 2;
  SampleStream stream(1, 1);
  fill_training_batch(data, stream, 1, 0, kInput, batch);
  const auto all = batch.images.span();
  EXPECT_FALSE(std::ranges::equal(all.first(kInput.elements()), all.last(kInput.elements())));
}

TEST(Augment, EvaluationIsTheCentre) {
  const Dataset data = cifar_of(5);
  Batch batch;
  batch.count = 2;
  fill_evaluation_batch(data, 3, kInput, batch);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{3, 4}));
  Augmentation centre;
  centre.top = centre.left = 4;
  EXPECT_TRUE(std::ranges::equal(batch.images.span().first(kInput.elements()), augmented(image(3), centre)));
}

TEST(CheckInput, RefusesModelsThatDoNotFit) {
  const Dataset data = cifar_of(10);
  EXPECT_TRUE(check_input(data, kInput, 10).ok());
  const Status shape = check_input(data, {1, 28, 28}, 10);
  ASSERT_FALSE(shape.ok());
  expect_text(shape.error().message, "1x28x28");
  EXPECT_FALSE(check_input(data, {3, 33, 24}, 10).ok());
  const Status classes = check_input(data, kInput, 9);
  ASSERT_FALSE(classes.ok());
  expect_text(classes.error().message, "label 9");
}

}  // namespace
}  // namespace tg::engine::test

#include "engine/data/digits/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/data/content_hash.h"
#include "engine/data/digits/canvas.h"
#include "engine/data/digits/glyphs.h"
#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

Dataset make(std::uint64_t seed, std::size_t train, std::size_t test) {
  DatasetOptions options;
  options.kind = DatasetKind::kSynthetic;
  options.seed = seed;
  options.synthetic_train = train;
  options.synthetic_test = test;
  return *make_digits(options);
}

std::uint64_t hash_of_all(const Dataset& data) {
  ContentHash hash;
  for (const ImageSet* set : {&data.train, &data.test}) {
    hash.add(set->pixels);
    hash.add(Bytes(set->labels.begin(), set->labels.end()));
  }
  return hash.value();
}

// Every node of a mesh must draw these bytes, on any processor and compiler: a change of either number is a new
// kDigitsVersion.
TEST(Digits, GoldenBytes) {
  const Dataset data = make(1, 2'000, 500);
  EXPECT_EQ(kDigitsVersion, 1u);
  EXPECT_EQ(hash_of_all(data), 13318777646321607957u);
  EXPECT_EQ(data.hash, 12133984211959129012u);
}

TEST(Digits, LargerSetsBeginAlikeAndSeedsDiffer) {
  const Dataset small = make(1, 100, 30), large = make(1, 300, 60), other = make(2, 100, 30);
  EXPECT_TRUE(std::equal(small.train.pixels.begin(), small.train.pixels.end(), large.train.pixels.begin()));
  EXPECT_TRUE(std::equal(small.test.labels.begin(), small.test.labels.end(), large.test.labels.begin()));
  EXPECT_NE(small.train.pixels, other.train.pixels);
  EXPECT_EQ(std::set<std::uint64_t>({small.hash, large.hash, other.hash, make(1, 100, 31).hash}).size(), 4u);
}

TEST(Digits, TrainAndTestAreDisjoint) {
  const Dataset data = make(1, 400, 400);
  std::set<Bytes> images;
  for (const ImageSet* set : {&data.train, &data.test}) {
    for (std::size_t i = 0; i < set->count(); ++i) {
      const auto first = set->pixels.begin() + static_cast<std::ptrdiff_t>(784 * i);
      images.insert(Bytes(first, first + 784));
    }
  }
  EXPECT_EQ(images.size(), 800u);
}

TEST(Digits, ClassesAreBalancedAndImagesHaveInk) {
  const Dataset data = make(3, 5'000, 1);
  int counts[10] = {};
  for (std::size_t i = 0; i < data.train.count(); ++i) {
    ++counts[data.train.labels[i]];
    const auto pixels = std::span(data.train.pixels).subspan(784 * i, 784);
    const auto bright = std::ranges::count_if(pixels, [](std::uint8_t p) { return p > 100; });
    ASSERT_GE(bright, 10) << "image " << i << " shows no digit";
    ASSERT_LE(bright, 400) << "image " << i << " is flooded";
  }
  for (const int count : counts) EXPECT_NEAR(count, 500, 90);  // 4 deviations of 21
}

TEST(Digits, CanBeEndedWhileTheyAreDrawn) {
  struct Enough {};
  DatasetOptions options;
  int calls = 0;
  options.advanced = [&calls](std::size_t, std::size_t) {
    if (++calls == 3) throw Enough{};
  };
  EXPECT_THROW((void)load_dataset(options), Enough);
}

TEST(Digits, TooLargeASetIsAnError) {
  DatasetOptions options;
  options.kind = DatasetKind::kSynthetic;
  options.synthetic_train = kMaxDigits + 1;
  const auto data = load_dataset(options);
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.error().kind, ErrorKind::kInvalidJob);
  expect_text(data.error().message, "1000001");
}

TEST(Glyphs, EveryDigitHasStylesOfProperStrokes) {
  for (int digit = 0; digit < 10; ++digit) {
    const auto styles = glyphs_of(digit);
    EXPECT_GE(styles.size(), 2u);
    for (const Glyph& glyph : styles) {
      ASSERT_FALSE(glyph.empty());
      int left = 100, right = 0, top = 100, bottom = 0;
      for (const Stroke& stroke : glyph) {
        ASSERT_GE(stroke.size(), 2u);
        for (const GlyphPoint& p : stroke) {
          left = std::min<int>(left, p.x);
          right = std::max<int>(right, p.x);
          top = std::min<int>(top, p.y);
          bottom = std::max<int>(bottom, p.y);
        }
      }
      EXPECT_TRUE(left >= 10 && right <= 90 && top >= 0 && bottom <= 100) << digit;
      EXPECT_GE(bottom - top, 90) << digit;
    }
  }
}

TEST(Canvas, DrawsARoundPenAndNothingOutside) {
  Canvas canvas;
  Pen pen;
  pen.radius = 2;
  canvas.draw_line({10, 10}, {10, 10}, pen);
  EXPECT_EQ(canvas.ink()[10 * 28 + 10], 255);
  EXPECT_NEAR(canvas.ink()[10 * 28 + 12], 127.5, 1e-9);  // at the radius the ink is half
  EXPECT_EQ(canvas.ink()[10 * 28 + 13], 0);
  Canvas outside;
  outside.draw_line({-50, -50}, {-40, 90}, pen);
  outside.draw_line({1e9, 3}, {2e9, 4}, pen);
  EXPECT_EQ(std::ranges::count(outside.ink(), 0.0), 784);
}

}  // namespace
}  // namespace tg::engine::test

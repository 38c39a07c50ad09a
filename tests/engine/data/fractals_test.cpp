#include "engine/data/fractals/fractals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/data/content_hash.h"
#include "tests/engine/data/support.h"

namespace tg::engine::test {
namespace {

DatasetOptions options_of(int classes, int size) {
  DatasetOptions options;
  options.kind = DatasetKind::kFractals;
  options.classes = classes;
  options.size = size;
  options.synthetic_train = 40;
  options.synthetic_test = 12;
  return options;
}

Picture picture_of(const Dataset& data, const ImageSet& set, std::size_t index) {
  Picture picture;
  EXPECT_TRUE(set.source
                  ->read(
                      index, [](int, int) { return 1; }, picture)
                  .ok());
  EXPECT_EQ(picture.pixels.size(), data.train.stored.elements());
  return picture;
}

// Every node of a mesh must draw these bytes, on any processor and compiler: a change of either number is a new
// kFractalsVersion.
TEST(Fractals, GoldenBytes) {
  const auto data = load_dataset(options_of(6, 64)).value();
  ContentHash hash;
  for (const ImageSet* set : {&data->train, &data->test}) {
    for (std::size_t i = 0; i < set->count(); ++i) hash.add(picture_of(*data, *set, i).pixels);
  }
  EXPECT_EQ(kFractalsVersion, 1u);
  EXPECT_EQ(hash.value(), 8652647518413670996u);
  EXPECT_EQ(data->hash, 6050326724189062924u);
}

TEST(Fractals, MapsAreAsDocumented) {
  std::vector<OrbitPoint> points(kSearchPoints);
  std::vector<std::uint32_t> hits;
  for (std::uint64_t c = 0; c < 5; ++c) {
    const AffineMaps maps = draw_maps(3, c);
    ASSERT_TRUE(maps.size() >= 2 && maps.size() <= 7);
    for (const AffineMap& map : maps) {
      for (const double coefficient : map) ASSERT_TRUE(coefficient > -1 && coefficient < 1);
    }
    // Another orbit of the same maps has another bounding box: a point far out makes the rest smaller.
    Draws draws(99, DrawDomain::kFractalTrain, c);
    ASSERT_TRUE(walk(maps, draws, points));
    count_hits(points, kSearchSize, hits);
    const auto filled = std::ranges::count_if(hits, [](std::uint32_t h) { return h != 0; });
    EXPECT_GT(static_cast<double>(filled), 0.5 * kMinFill * kSearchSize * kSearchSize);
  }
}

TEST(Fractals, MapsAreChosenByTheirDeterminants) {
  // Determinants 0.3 and -0.1.
  const AffineMaps maps = {{0.6, 0, 0, 0.5, 10, 0}, {0.2, 0, 0, -0.5, -10, 0}};
  std::vector<OrbitPoint> points(40'000);
  Draws draws(1, DrawDomain::kFractalTrain, 0);
  ASSERT_TRUE(walk(maps, draws, points));
  int first = 0;
  // x -> 0.6 x + 10 stays above 0.2 x - 10 for every x above -50.
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double x = points[i - 1].x;
    first += points[i].x == 0.6 * x + 10 ? 1 : 0;
  }
  EXPECT_NEAR(first, 30'000, 400);  // 4 deviations of 87
}

TEST(Fractals, AnOrbitThatFliesAwayIsRefused) {
  std::vector<OrbitPoint> points(100);
  Draws draws(1, DrawDomain::kFractalTrain, 0);
  EXPECT_FALSE(walk({{1.5, 0, 0, 1.5, 1, 1}}, draws, points));
  EXPECT_FALSE(walk({{1, 1, 1, 1, 0, 0}}, draws, points)) << "no determinant, no probability";
}

TEST(Fractals, PicturesDifferWithinAClassAndBetweenTheSets) {
  const auto data = load_dataset(options_of(4, 32)).value();
  std::set<Bytes> seen;
  for (const ImageSet* set : {&data->train, &data->test}) {
    for (std::size_t i = 0; i < set->count(); ++i) {
      EXPECT_EQ(set->labels[i], i % 4);
      const Picture picture = picture_of(*data, *set, i);
      EXPECT_TRUE(seen.insert(picture.pixels).second);
      const auto lit = std::ranges::count_if(picture.pixels, [](std::uint8_t v) { return v > 30; });
      EXPECT_GT(lit, 32 * 32 * 3 / 20) << "picture " << i << " shows nothing";
    }
  }
}

TEST(Fractals, ThreadsAndLargerSetsDrawTheSame) {
  DatasetOptions options = options_of(5, 48);
  const auto one = load_dataset(options).value();
  options.threads = 3;
  EXPECT_EQ((*load_dataset(options))->hash, one->hash);
  options.synthetic_train = 100;
  const auto larger = load_dataset(options).value();
  EXPECT_NE(larger->hash, one->hash);
  EXPECT_EQ(picture_of(*larger, larger->train, 7).pixels, picture_of(*one, one->train, 7).pixels);
}

TEST(Fractals, SizesOutOfRangeAreErrors) {
  const auto problem = [](DatasetOptions options) {
    const auto data = load_dataset(options);
    return data.ok() ? "no error" : data.error().message;
  };
  expect_text(problem(options_of(1, 32)), "data-classes = 1 with data = fractals: it can be 2 to 65535");
  expect_text(problem(options_of(2, 8)), "image-size = 8");
  expect_text(problem(options_of(2, 2000)), "image-size = 2000");
}

TEST(Fractals, TheyArePreparedAsTheyAre) {
  const auto data = load_dataset(options_of(2, 32)).value();
  const Recipe recipe = make_recipe(*data, data->train.stored).value();
  EXPECT_EQ(recipe.input, (ImageShape{3, 32, 32}));
  EXPECT_EQ(recipe.normalization, Normalization::kSymmetric);
  Batch batch;
  batch.count = 3;
  fill_evaluation_batch(*data, recipe, 1, batch);
  const Picture second = picture_of(*data, data->test, 2);
  EXPECT_EQ(batch.images[recipe.input.elements()], (static_cast<float>(second.pixels[0]) / 255.0f - 0.5f) * 2.0f);
  EXPECT_EQ(batch.labels, (std::vector<std::int32_t>{1, 0, 1}));
}

}  // namespace
}  // namespace tg::engine::test

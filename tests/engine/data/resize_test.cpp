#include "engine/data/recipe/resize.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/data/content_hash.h"
#include "engine/data/recipe/make_input.h"
#include "tests/engine/data/pictures.h"

namespace tg::engine::test {
namespace {

Picture noise(int channels, int height, int width) {
  Picture picture;
  picture.shape(channels, height, width);
  for (std::size_t i = 0; i < picture.pixels.size(); ++i)
    picture.pixels[i] = static_cast<std::uint8_t>((i * 7919 + i * i % 251 * 31) >> 2);
  return picture;
}

Picture resized(const Picture& in, int height, int width, Part part = {}) {
  if (part.height == 0) part = {0, 0, double(in.height), double(in.width)};
  Picture out;
  std::vector<std::uint8_t> scratch;
  resize(view_of(in), part, {height, width, 0, 0, height, width}, out, scratch);
  return out;
}

std::uint64_t hash_of(const Picture& picture) {
  ContentHash hash;
  hash.add(picture.pixels);
  return hash.value();
}

// Computed by Pillow 9.4 from the same bytes: Image.resize((width, height), Image.BILINEAR, box=...), then ContentHash.
// The artefact resizes with Pillow, so these are not ours to change.
TEST(Resize, GivesPillowsBytes) {
  struct Case {
    int channels, height, width, to_height, to_width;
    Part part;
    std::uint64_t hash;
  };
  const Case cases[] = {
      {3, 64, 48, 32, 24, {}, 7909080460931287894u},
      {3, 61, 83, 40, 29, {}, 11189693272971029312u},
      {1, 28, 28, 32, 32, {}, 9160858452342851330u},
      {3, 32, 32, 224, 224, {}, 16971076965162626253u},
      {3, 375, 500, 256, 341, {}, 2839849974627102074u},
      {1, 100, 10, 7, 90, {}, 7559061491053739090u},
      {3, 120, 97, 24, 24, {10, 3, 100, 77}, 7516696572061581900u},
      {3, 50, 67, 28, 28, {1.5, 2.25, 40, 30.5}, 16119253505874971761u},
      {1, 200, 200, 1, 1, {}, 14481955357491726725u},
      {3, 5, 9, 11, 9, {}, 2970403769147065059u},
  };
  for (const Case& c : cases) {
    const Picture in = noise(c.channels, c.height, c.width);
    EXPECT_EQ(hash_of(resized(in, c.to_height, c.to_width, c.part)), c.hash)
        << c.channels << "x" << c.height << "x" << c.width << " to " << c.to_height << "x" << c.to_width;
  }
}

TEST(Resize, ToItsOwnSizeChangesNothing) {
  const Picture in = noise(3, 13, 17);
  EXPECT_EQ(resized(in, 13, 17).pixels, in.pixels);
}

TEST(Resize, AWindowIsThatPartOfTheWhole) {
  const Picture in = noise(3, 61, 83), whole = resized(in, 40, 29);
  Picture window;
  std::vector<std::uint8_t> scratch;
  resize(view_of(in), {0, 0, 61, 83}, {40, 29, 11, 5, 20, 13}, window, scratch);
  for (int y = 0; y < 20; ++y) {
    const auto row = std::span(window.pixels).subspan(static_cast<std::size_t>(y * 13 * 3), 13 * 3);
    const auto expected = std::span(whole.pixels).subspan(static_cast<std::size_t>(((y + 11) * 29 + 5) * 3), 13 * 3);
    ASSERT_TRUE(std::ranges::equal(row, expected)) << y;
  }
}

TEST(Resize, PlanesAndPixelsGiveTheSame) {
  const Picture in = noise(3, 30, 20), expected = resized(in, 11, 13);
  std::vector<std::uint8_t> planes(in.pixels.size());
  for (std::size_t i = 0; i < planes.size(); ++i) planes[i % 3 * 600 + i / 3] = in.pixels[i];
  Picture out;
  std::vector<std::uint8_t> scratch;
  resize(view_of(planes.data(), {3, 30, 20}), {0, 0, 30, 20}, {11, 13, 0, 0, 11, 13}, out, scratch);
  EXPECT_EQ(out.pixels, expected.pixels);
}

// One pixel, one line, the largest reductions and enlargements: no read beside the picture (the sanitizer sees), and a
// uniform picture stays what it is.
TEST(Resize, ExtremesKeepAUniformPicture) {
  using Size = std::pair<int, int>;
  for (const auto& [height, width] : {Size{1, 1}, Size{1, 50}, Size{50, 1}, Size{3, 2}, Size{300, 4}}) {
    for (const auto& [rows, columns] : {Size{1, 1}, Size{1, 40}, Size{77, 5}}) {
      Picture in;
      in.shape(3, height, width);
      std::ranges::fill(in.pixels, std::uint8_t{201});
      const Picture out = resized(in, rows, columns);
      ASSERT_EQ(out.pixels.size(), static_cast<std::size_t>(3 * rows * columns));
      for (const std::uint8_t v : out.pixels) ASSERT_EQ(v, 201);
    }
  }
}

TEST(Resize, ShrinkLeavesBothSidesLongEnough) {
  EXPECT_EQ(shrink_of(2000, 3000, 224, 224), 8);
  EXPECT_EQ(shrink_of(1791, 3000, 224, 224), 4);
  EXPECT_EQ(shrink_of(500, 449, 224, 224), 2);
  EXPECT_EQ(shrink_of(447, 9000, 224, 224), 1);
  EXPECT_EQ(shrink_of(10, 10, 224, 224), 1);
}

}  // namespace
}  // namespace tg::engine::test

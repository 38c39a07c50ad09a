// One stored sample through a recipe. Any thread, each with a Scratch of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/draws.h"
#include "engine/data/picture.h"
#include "engine/data/recipe/view.h"
#include "engine/dataset.h"

namespace tg::engine {

// Memory that one sample leaves to the next.
struct Scratch {
  Picture decoded, resized, padded, grey;
  std::vector<std::uint8_t> rows;
};

// A rectangle of a picture's pixels.
struct Area {
  int top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Area&) const = default;
};
// What crop = area trains on: ten times a part of 0.08 to 1 of the area is drawn, with sides 1:1 to 4:3 one way or the
// other; the first that fits counts, and if none does the largest one in the middle whose sides are no further apart.
Area draw_area(int height, int width, Draws& draws);

// The largest of 8, 4, 2, 1 that leaves both sides at least as long as they are wanted.
int shrink_of(int height, int width, int wanted_height, int wanted_width);

// Sample `index` of `set` into `out`: as training sees it with these draws, or (draws = null) as evaluation does.
// Errors are its file's.
Status make_input(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws, Scratch& scratch,
                  std::span<float> out);

// The same of a sample of bytes, without colour and normalization: a view into the set or the scratch.
Result<PictureView> make_bytes(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws,
                               Scratch& scratch);

}  // namespace tg::engine

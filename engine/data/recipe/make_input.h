// Makes an input from a stored sample by a recipe. Any thread, each with a Scratch of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/data/draws.h"
#include "engine/data/picture.h"
#include "engine/data/recipe/view.h"
#include "engine/dataset.h"

namespace tg::engine {

// Memory reused from one sample to the next.
struct Scratch {
  Picture decoded, resized, padded, grey;
  std::vector<std::uint8_t> rows;
};

// A rectangle of a picture's pixels.
struct Area {
  int top = 0, left = 0, height = 0, width = 0;
  bool operator==(const Area&) const = default;
};
// The part that crop = area trains on. Up to ten times, a part of `least` to 1 of the area is drawn, with sides from
// 3:4 to 4:3; the first that fits is used. If none fits, it is the largest part in the middle within that ratio.
Area draw_area(int height, int width, double least, Draws& draws);

// The largest of 8, 4, 2, 1 that leaves both sides at least as long as wanted.
int shrink_of(int height, int width, int wanted_height, int wanted_width);

// Writes sample `index` of `set` to `out`: as training sees it with these draws, or (draws = null) as evaluation does.
// Errors are those of reading its file.
Status make_input(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws, Scratch& scratch,
                  std::span<float> out);

// As make_input, for a sample of bytes, without colour and normalization: a view into the set or the scratch.
Result<PictureView> make_bytes(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws,
                               Scratch& scratch);

}  // namespace tg::engine

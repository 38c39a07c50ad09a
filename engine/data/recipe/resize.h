// Resizing with a triangle filter and antialiasing: bit for bit what Pillow's Image.resize(size, BILINEAR, box=part)
// does to 8-bit channels, so that the artefact can do the same with Pillow, or anybody in a few lines:
//
//   along an axis scale = length / n, reach = max(scale, 1); output o has its centre at start + (o + 0.5) * scale;
//   it takes inputs k from floor(centre - reach + 0.5), not below 0, to before floor(centre + reach + 0.5), not above
//   the picture's size, with weights max(0, 1 - |k + 0.5 - centre| / reach), divided by their sum, times 2^22, rounded;
//   a value is (2^21 + sum of weight * byte) >> 22, at most 255. First along rows, to bytes, then along columns.
//
// The weights are computed in double with + - * / and the sums in whole numbers: the same on every machine. Pure; any
// thread.
#pragma once

#include <vector>

#include "engine/data/recipe/view.h"

namespace tg::engine {

// A rectangle inside a picture, in pixels; fractions are allowed.
struct Part {
  double top = 0, left = 0, height = 0, width = 0;
};

// The size that the part is resized to, and the window of it that is wanted.
struct Target {
  int height = 0, width = 0;
  int top = 0, left = 0, rows = 0, columns = 0;
};

// `out` becomes target.rows by target.columns, with the view's channels. `scratch` may be reused.
void resize(const PictureView& in, const Part& part, const Target& target, Picture& out,
            std::vector<std::uint8_t>& scratch);

}  // namespace tg::engine

// The recipe that turns a stored sample into the engine's input, with all its numbers. The artefact repeats the
// evaluation's part outside this program (recipe_json), so every step is defined here to the bit. Values; any thread.
//
// Evaluation of a picture (bytes, 1 or 3 channels):
//   1. decode. A JPEG whose shorter side is at least s times `resize`, s the largest of 8, 4, 2, 1, is decoded at
//      1/s of its size (libjpeg's scaled inverse DCT; Pillow: draft("RGB", (resize, resize))). PNG: in full; 16 bits
//      keep their high byte, alpha is dropped. Orientation tags are ignored. A JPEG in whose entropy-coded data
//      libjpeg meets an error is damaged; Pillow accepts it.
//   2. channels. One becomes three alike; three become one: (19595 R + 38470 G + 7471 B + 32768) >> 16.
//   3. resize, unless it is 0. The shorter side becomes `resize` pixels, the longer one resize * longer / shorter,
//      rounded down; with resize-shape = square both become `resize` pixels. Triangle filter with antialiasing, bit for
//      bit what Pillow's resize(size, BILINEAR) does to 8-bit pictures (engine/data/recipe/resize.h).
//   4. crop: the window of the input's size in the middle; its top and left are half of the excess, rounded down.
//   5. x / 255 in float32, then the normalization.
// Training has these in place of 3 and 4:
//   window   resize; `padding` black pixels on every side; a window of the input's size, top and left drawn uniformly
//   area     a part of the picture of `least_area` to 1 of its area, its sides 3:4 to 4:3, resized to the input
//   whatever its
//            shape; a JPEG is decoded at 1/s where the part is at least s times the input
//   then flip: left to right, every second one; then colour, on x / 255:
//   paper    brightness +-63/255, then contrast 0.2 to 1.8 about each channel's mean, as CifarNet's authors do
//   jitter   brightness, contrast about the picture's mean grey, saturation about each pixel's grey: factors drawn from
//            1 - strength to 1 + strength, cut to [0, 1] after each; grey = 0.299 R + 0.587 G + 0.114 B. Then, unless
//            it is 0, the hue: turned by -hue to +hue of its circle, largest and smallest of R, G, B kept
// The random draws depend on (seed, position in the stream) alone.
// Normalization: none; symmetric (x - 0.5) * 2; per-image (x - mean) / max(deviation, 1/sqrt(n)) over the n values of
// the sample; given, measured (x - mean[c]) / deviation[c] in float32, as torchvision's Normalize. Measured: over the
// training set, bytes as evaluation sees them (at most kMaxMeasuredPictures, evenly spaced, where they have to be
// decoded); a deviation of 0 counts as 1.
// Samples of floats know normalization only, without 1 / 255.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/choices.h"
#include "engine/model.h"
#include "kernels/base/status.h"

namespace tg::engine {

struct Dataset;

struct Recipe {
  ImageShape input;
  bool floats = false;  // samples are stored as floats, so they are not divided by 255
  int resize = 0;       // pixels of the shorter side; 0 = as stored
  ResizeShape resize_shape = ResizeShape::kAspect;
  Crop crop = Crop::kNone;
  int padding = 0;  // pixels of padding for a window
  Flip flip = Flip::kNone;
  Colour colour = Colour::kNone;
  double least_area = 0;       // area's, a share of the picture's
  double colour_strength = 0;  // jitter's strength
  double colour_hue = 0;       // jitter's, a share of the hue's circle
  Normalization normalization = Normalization::kNone;
  std::vector<float> mean, deviation;  // per channel; empty unless given or measured
};

// What the job sets. The rest follows from the data:
//   synthetic, mnist, idx, fractals   symmetric, nothing else
//   cifar10, cifar100   input smaller than the pictures: window, flip, colour paper, per-image (the paper's CifarNet);
//                       else window with an eighth of the side as padding, flip, measured
//   folder              the same if all pictures have the input's size; else area, flip, measured, resize 8/7 of the
//                       input
//   npy, and floats of idx   measured
struct RecipeOptions {
  std::optional<Crop> crop;
  std::optional<int> padding;
  std::optional<int> resize;
  ResizeShape resize_shape = ResizeShape::kAspect;
  double least_area = 0.08;
  std::optional<Flip> flip;
  std::optional<Colour> colour;
  double colour_strength = 0.4;
  double colour_hue = 0;
  std::optional<Normalization> normalization;
  std::vector<double> mean, deviation;  // for `given`: one number for all channels, or one for each
};

// Errors say which key and which data do not go together. Decodes pictures on `threads` threads if it has to measure.
// advanced: called by any of them meanwhile; what it throws passes through.
Result<Recipe> make_recipe(
    const Dataset& data, const ImageShape& input, const RecipeOptions& options = {}, int threads = 1,
    const std::function<void()>& advanced = [] {});

// The whole recipe as one JSON object, numbers exact: for model.json.
std::string recipe_json(const Recipe& recipe);

}  // namespace tg::engine

// The last part of a recipe: turns bytes of the input's size into the engine's floats. Only + - * / sqrt are used, so
// every node gets the same floats. Pure; any thread. `out` holds input.elements() floats, CHW.
#pragma once

#include <cstdint>
#include <span>

#include "engine/data/draws.h"
#include "engine/data/recipe/view.h"
#include "engine/recipe.h"

namespace tg::engine {

// The random values for one picture.
struct ColourDraws {
  double brightness = 0;  // paper: added to x / 255; jitter: a factor
  double contrast = 1;
  double saturation = 1;
  double hue = 0;  // jitter: a share of its circle
};
// Draws, in this order, brightness, contrast and, for jitter, saturation and the hue, if it changes.
ColourDraws draw_colour(const Recipe& recipe, Draws& draws);

// Writes normalized floats; draws = null leaves the colours unchanged.
void to_floats(const PictureView& picture, const Recipe& recipe, const ColourDraws* draws, std::span<float> out);
// Normalizes a sample of floats in place.
void normalize(const Recipe& recipe, std::span<float> values);

}  // namespace tg::engine

#include "engine/data/recipe/make_input.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/data/limits.h"
#include "engine/data/recipe/colour.h"
#include "engine/data/recipe/resize.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

constexpr double kMaxAspect = 4.0 / 3.0;
constexpr int kAreaTries = 10;

// The sides after the recipe's resize.
Target whole(int height, int width, const Recipe& recipe) {
  const int shorter = recipe.resize;
  if (recipe.resize_shape == ResizeShape::kSquare) return {shorter, shorter};
  const auto longer = [&](int of, int to) { return static_cast<int>(static_cast<std::int64_t>(shorter) * of / to); };
  return height <= width ? Target{shorter, longer(width, height)} : Target{longer(height, width), shorter};
}

// The error for a picture that would become too large when resized, though only a window of it is needed.
Error too_long(std::size_t index, const PictureView& view, const Target& target) {
  const auto sides = [](int height, int width) { return std::to_string(width) + "x" + std::to_string(height); };
  return {ErrorKind::kCorrupt, "sample " + std::to_string(index) + " is too long and narrow: its " +
                                   sides(view.height, view.width) + " pixels would become " +
                                   sides(target.height, target.width) + ", more than the " +
                                   std::to_string(kMaxPicturePixels) + " allowed; set resize to less, or take it out"};
}

PictureView as_grey(const PictureView& view, Picture& out) {
  out.shape(1, view.height, view.width);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < view.height; ++y) {
    const std::uint8_t* at = view.line(0, y);
    for (int x = 0; x < view.width; ++x, at += view.column) {
      const std::uint32_t sum = 19595u * at[0] + 38470u * at[view.plane] + 7471u * at[2 * view.plane] + 32768u;
      *to++ = static_cast<std::uint8_t>(sum >> 16);
    }
  }
  return view_of(out);
}

PictureView with_channels(PictureView view, int channels, Scratch& scratch) {
  if (view.channels == channels) return view;
  TG_CHECK(view.channels + channels == 4, view.channels, channels);  // 1 and 3
  if (channels == 1) return as_grey(view, scratch.grey);
  view.channels = channels;
  view.plane = 0;
  return view;
}

PictureView padded(const PictureView& view, int padding, Picture& out) {
  if (padding == 0) return view;
  out.shape(view.channels, view.height + 2 * padding, view.width + 2 * padding);
  std::fill(out.pixels.begin(), out.pixels.end(), std::uint8_t{0});
  for (int y = 0; y < view.height; ++y) {
    std::uint8_t* to = out.pixels.data() + (static_cast<std::size_t>(y + padding) * out.width + padding) * out.channels;
    for (int x = 0; x < view.width; ++x) {
      for (int c = 0; c < view.channels; ++c) *to++ = view.line(c, y)[x * view.column];
    }
  }
  return view_of(out);
}

PictureView centre_of(const PictureView& view, const ImageShape& input) {
  return cropped(view, (view.height - input.height) / 2, (view.width - input.width) / 2, input.height, input.width);
}

PictureView window_of(const PictureView& view, const ImageShape& input, Draws& draws) {
  const auto top = draws.below(static_cast<std::uint32_t>(view.height - input.height + 1));
  const auto left = draws.below(static_cast<std::uint32_t>(view.width - input.width + 1));
  return cropped(view, static_cast<int>(top), static_cast<int>(left), input.height, input.width);
}

bool draws_area(const Recipe& recipe, const Draws* draws) { return draws != nullptr && recipe.crop == Crop::kArea; }

// The sample as stored, or decoded no larger than needed. `area`: what training draws, first in pixels of the full
// size, afterwards in pixels of the decoded picture.
Result<PictureView> stored_bytes(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws,
                                 Scratch& scratch, Part& area) {
  int full_height = 0, full_width = 0, shrink = 1;
  const auto choose = [&](int height, int width) {
    full_height = height;
    full_width = width;
    if (draws_area(recipe, draws)) {
      const Area drawn = draw_area(height, width, recipe.least_area, *draws);
      area = {double(drawn.top), double(drawn.left), double(drawn.height), double(drawn.width)};
      return shrink_of(drawn.height, drawn.width, recipe.input.height, recipe.input.width);
    }
    return recipe.resize == 0
               ? 1
               : shrink_of(std::min(height, width), std::min(height, width), recipe.resize, recipe.resize);
  };
  if (set.source == nullptr) {
    const std::size_t elements = set.stored.elements();
    const PictureView view = view_of(set.pixels.data() + index * elements, set.stored);
    choose(view.height, view.width);
    return view;
  }
  if (const Status read = set.source->read(index, choose, scratch.decoded); !read) return read.error();
  // One decoder divides both sides by as much as allowed, rounding up; the other does not divide.
  if (scratch.decoded.width != full_width || scratch.decoded.height != full_height) {
    while ((full_width + shrink - 1) / shrink > scratch.decoded.width) shrink *= 2;
    area = {area.top / shrink, area.left / shrink, area.height / shrink, area.width / shrink};
  }
  return view_of(scratch.decoded);
}

}  // namespace

Area draw_area(int height, int width, double least, Draws& draws) {
  const double all = static_cast<double>(height) * width;
  for (int i = 0; i < kAreaTries; ++i) {
    const double area = all * draws.between(least, 1);
    double ratio = draws.between(1, kMaxAspect);
    if (draws.below(2) == 1) ratio = 1 / ratio;
    const int w = static_cast<int>(std::floor(std::sqrt(area * ratio) + 0.5)),
              h = static_cast<int>(std::floor(std::sqrt(area / ratio) + 0.5));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto top = draws.below(static_cast<std::uint32_t>(height - h + 1));
    const auto left = draws.below(static_cast<std::uint32_t>(width - w + 1));
    return {static_cast<int>(top), static_cast<int>(left), h, w};
  }
  const int w = std::min(width, static_cast<int>(std::floor(height * kMaxAspect + 0.5)));
  const int h = std::min(height, static_cast<int>(std::floor(width * kMaxAspect + 0.5)));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

int shrink_of(int height, int width, int wanted_height, int wanted_width) {
  const int most = std::min(height / wanted_height, width / wanted_width);
  for (const int shrink : {8, 4, 2}) {
    if (most >= shrink) return shrink;
  }
  return 1;
}

Result<PictureView> make_bytes(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws,
                               Scratch& scratch) {
  Part area;
  const Result<PictureView> stored = stored_bytes(set, index, recipe, draws, scratch, area);
  if (!stored) return stored;
  const ImageShape& input = recipe.input;
  const PictureView view = with_channels(*stored, input.channels, scratch);
  if (draws_area(recipe, draws)) {
    resize(view, area, {input.height, input.width, 0, 0, input.height, input.width}, scratch.resized, scratch.rows);
    return view_of(scratch.resized);
  }
  const bool windowed = draws != nullptr && recipe.crop == Crop::kWindow;
  Target target{view.height, view.width};
  if (recipe.resize != 0) target = whole(view.height, view.width, recipe);
  if (target.height == view.height && target.width == view.width) {
    if (!windowed) return centre_of(view, input);
    return window_of(padded(view, recipe.padding, scratch.padded), input, *draws);
  }
  const Part all{0, 0, double(view.height), double(view.width)};
  if (windowed) {
    if (static_cast<std::size_t>(target.height) * static_cast<std::size_t>(target.width) > kMaxPicturePixels)
      return too_long(index, view, target);
    target.rows = target.height;
    target.columns = target.width;
    resize(view, all, target, scratch.resized, scratch.rows);
    return window_of(padded(view_of(scratch.resized), recipe.padding, scratch.padded), input, *draws);
  }
  target.top = (target.height - input.height) / 2;
  target.left = (target.width - input.width) / 2;
  target.rows = input.height;
  target.columns = input.width;
  resize(view, all, target, scratch.resized, scratch.rows);
  return view_of(scratch.resized);
}

Status make_input(const ImageSet& set, std::size_t index, const Recipe& recipe, Draws* draws, Scratch& scratch,
                  std::span<float> out) {
  if (!set.values.empty()) {
    const auto values = std::span(set.values).subspan(index * out.size(), out.size());
    std::copy(values.begin(), values.end(), out.begin());
    normalize(recipe, out);
    return {};
  }
  Result<PictureView> bytes = make_bytes(set, index, recipe, draws, scratch);
  if (!bytes) return bytes.error();
  PictureView view = *bytes;
  if (draws == nullptr) {
    to_floats(view, recipe, nullptr, out);
    return {};
  }
  if (recipe.flip == Flip::kHorizontal && draws->below(2) == 1) view = flipped(view);
  const ColourDraws colours = draw_colour(recipe, *draws);
  to_floats(view, recipe, &colours, out);
  return {};
}

}  // namespace tg::engine

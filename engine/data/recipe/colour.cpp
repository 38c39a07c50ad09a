#include "engine/data/recipe/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

constexpr double kMaxBrightness = 63.0 / 255.0;
constexpr double kMinContrast = 0.2;
constexpr double kMaxContrast = 1.8;
constexpr double kRed = 0.299, kGreen = 0.587, kBlue = 0.114;

double mean_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

void standardize(std::span<float> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const float v : values) squares += (v - mean) * (v - mean);
  const double n = static_cast<double>(values.size());
  const double deviation = std::sqrt(squares / n);
  const double least = 1.0 / std::sqrt(n);  // a uniform image must not divide by zero
  const double divisor = deviation > least ? deviation : least;
  for (float& v : values) v = static_cast<float>((v - mean) / divisor);
}

// Normalizes a value; not used for per-image, which standardizes whole samples.
float normalized(float value, const Recipe& recipe, std::size_t channel) {
  switch (recipe.normalization) {
    case Normalization::kSymmetric:
      return (value - 0.5f) * 2.0f;
    case Normalization::kGiven:
    case Normalization::kMeasured:
      return (value - recipe.mean[channel]) / recipe.deviation[channel];
    case Normalization::kNone:
    case Normalization::kPerImage:
      return value;
  }
  TG_CHECK(false, static_cast<int>(recipe.normalization));
}

// Uses a table if that saves divisions; the floats are the same.
void copy_plane(const PictureView& picture, int c, const Recipe& recipe, bool plain, std::span<float> out) {
  std::array<float, 256> table;
  const auto value_of = [&](std::size_t byte) {
    const float value = static_cast<float>(byte) / 255.0f;
    return plain ? value : normalized(value, recipe, static_cast<std::size_t>(c));
  };
  const bool tabled = out.size() >= table.size();
  if (tabled) {
    for (std::size_t byte = 0; byte < table.size(); ++byte) table[byte] = value_of(byte);
  }
  float* to = out.data();
  for (int y = 0; y < picture.height; ++y) {
    const std::uint8_t* from = picture.line(c, y);
    for (int x = 0; x < picture.width; ++x, from += picture.column) *to++ = tabled ? table[*from] : value_of(*from);
  }
}

void paper_colours(const ColourDraws& draws, std::size_t plane, std::span<float> out) {
  for (std::size_t first = 0; first < out.size(); first += plane) {
    const std::span<float> channel = out.subspan(first, plane);
    for (float& v : channel) v = static_cast<float>(v + draws.brightness);
    const double mean = mean_of(channel);
    for (float& v : channel) v = static_cast<float>((v - mean) * draws.contrast + mean);
  }
}

float in_range(double value) { return static_cast<float>(std::clamp(value, 0.0, 1.0)); }

double grey_of(std::span<const float> values, std::size_t plane, std::size_t at) {
  if (values.size() != 3 * plane) return values[at];
  return kRed * values[at] + kGreen * values[plane + at] + kBlue * values[2 * plane + at];
}

// Turns the hue of R, G, B in [0, 1] by `turn` sixths of its circle, -3 to 3.
void turn_hue(double turn, std::span<float> out, std::size_t plane, std::size_t at) {
  float* const rgb[] = {&out[at], &out[plane + at], &out[2 * plane + at]};
  const double r = *rgb[0], g = *rgb[1], b = *rgb[2];
  const double most = std::max({r, g, b}), range = most - std::min({r, g, b});
  if (range == 0) return;
  const double hue = turn + (most == r ? (g - b) / range : most == g ? 2 + (b - r) / range : 4 + (r - g) / range);
  constexpr double kPlace[] = {5, 3, 1};  // as in the usual formula of RGB from hue, saturation, value
  for (int c = 0; c < 3; ++c) {
    double k = hue + kPlace[c];
    k -= 6 * std::floor(k / 6);
    *rgb[c] = in_range(most - range * std::clamp(std::min(k, 4 - k), 0.0, 1.0));
  }
}

void jitter_colours(const ColourDraws& draws, std::size_t plane, std::span<float> out) {
  for (float& v : out) v = in_range(v * draws.brightness);
  double sum = 0;
  for (std::size_t at = 0; at < plane; ++at) sum += grey_of(out, plane, at);
  const double mean = sum / static_cast<double>(plane);
  for (float& v : out) v = in_range((v - mean) * draws.contrast + mean);
  if (out.size() != 3 * plane) return;
  for (std::size_t at = 0; at < plane; ++at) {
    const double grey = grey_of(out, plane, at);
    for (std::size_t i = at; i < out.size(); i += plane) out[i] = in_range((out[i] - grey) * draws.saturation + grey);
    if (draws.hue != 0) turn_hue(6 * draws.hue, out, plane, at);
  }
}

}  // namespace

ColourDraws draw_colour(const Recipe& recipe, Draws& draws) {
  ColourDraws drawn;
  if (recipe.colour == Colour::kPaper) {
    drawn.brightness = draws.between(-kMaxBrightness, kMaxBrightness);
    drawn.contrast = draws.between(kMinContrast, kMaxContrast);
  } else if (recipe.colour == Colour::kJitter) {
    for (double* factor : {&drawn.brightness, &drawn.contrast, &drawn.saturation})
      *factor = draws.between(1 - recipe.colour_strength, 1 + recipe.colour_strength);
    if (recipe.colour_hue > 0) drawn.hue = draws.between(-recipe.colour_hue, recipe.colour_hue);
  }
  return drawn;
}

void to_floats(const PictureView& picture, const Recipe& recipe, const ColourDraws* draws, std::span<float> out) {
  TG_CHECK(out.size() == recipe.input.elements() && picture.channels == recipe.input.channels &&
               picture.height == recipe.input.height && picture.width == recipe.input.width,
           out.size(), picture.channels, picture.height, picture.width);
  const bool coloured = draws != nullptr && recipe.colour != Colour::kNone;
  const std::size_t plane = out.size() / static_cast<std::size_t>(picture.channels);
  for (int c = 0; c < picture.channels; ++c) {
    copy_plane(picture, c, recipe, coloured, out.subspan(plane * static_cast<std::size_t>(c), plane));
  }
  if (coloured) {
    if (recipe.colour == Colour::kPaper)
      paper_colours(*draws, plane, out);
    else
      jitter_colours(*draws, plane, out);
    if (recipe.normalization != Normalization::kPerImage) normalize(recipe, out);
  }
  if (recipe.normalization == Normalization::kPerImage) standardize(out);
}

void normalize(const Recipe& recipe, std::span<float> values) {
  const std::size_t plane = values.size() / static_cast<std::size_t>(recipe.input.channels);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normalized(values[i], recipe, i / plane);
}

}  // namespace tg::engine

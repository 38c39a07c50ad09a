#include "engine/data/augment.h"

#include <cmath>

#include "engine/data/draws.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

constexpr double kMostBrightness = 63.0 / 255.0;
constexpr double kLeastContrast = 0.2;
constexpr double kMostContrast = 1.8;

void copy_crop(std::span<const std::uint8_t> channel, int stored_width, const ImageShape& input,
               const Augmentation& how, std::span<float> out) {
  for (int y = 0; y < input.height; ++y) {
    const std::uint8_t* row = channel.data() + static_cast<std::size_t>(how.top + y) * stored_width + how.left;
    float* to = out.data() + static_cast<std::size_t>(y) * input.width;
    for (int x = 0; x < input.width; ++x) to[x] = static_cast<float>(row[how.flip ? input.width - 1 - x : x]) / 255.0f;
  }
}

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

}  // namespace

void symmetric(std::span<const std::uint8_t> pixels, std::span<float> out) {
  TG_CHECK(pixels.size() == out.size(), pixels.size(), out.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) out[i] = (static_cast<float>(pixels[i]) / 255.0f - 0.5f) * 2.0f;
}

Augmentation draw_augmentation(std::uint64_t seed, std::uint64_t position, const ImageShape& stored,
                               const ImageShape& input) {
  Draws draws(seed, DrawDomain::kAugment, position);
  Augmentation how;
  how.top = static_cast<int>(draws.below(static_cast<std::uint32_t>(stored.height - input.height + 1)));
  how.left = static_cast<int>(draws.below(static_cast<std::uint32_t>(stored.width - input.width + 1)));
  how.flip = draws.below(2) == 1;
  how.brightness = draws.between(-kMostBrightness, kMostBrightness);
  how.contrast = draws.between(kLeastContrast, kMostContrast);
  return how;
}

Augmentation centre_crop(const ImageShape& stored, const ImageShape& input) {
  Augmentation how;
  how.top = (stored.height - input.height) / 2;
  how.left = (stored.width - input.width) / 2;
  return how;
}

void augment(std::span<const std::uint8_t> pixels, const ImageShape& stored, const ImageShape& input,
             const Augmentation& how, std::span<float> out) {
  TG_CHECK(pixels.size() == stored.elements() && out.size() == input.elements(), pixels.size(), out.size());
  TG_CHECK(how.top >= 0 && how.left >= 0 && how.top + input.height <= stored.height &&
               how.left + input.width <= stored.width && input.channels == stored.channels,
           how.top, how.left);
  const std::size_t stored_plane = static_cast<std::size_t>(stored.height) * stored.width;
  const std::size_t plane = static_cast<std::size_t>(input.height) * input.width;
  for (int c = 0; c < input.channels; ++c) {
    const std::span<float> channel = out.subspan(plane * c, plane);
    copy_crop(pixels.subspan(stored_plane * c, stored_plane), stored.width, input, how, channel);
    for (float& v : channel) v = static_cast<float>(v + how.brightness);
    const double mean = mean_of(channel);
    for (float& v : channel) v = static_cast<float>((v - mean) * how.contrast + mean);
  }
  standardize(out);
}

}  // namespace tg::engine

#include "engine/data/shown_samples.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tg::engine {
namespace {

constexpr float kWhite = 255;

// Bytes from floats of 0 to 1 in the order CHW, each the mean of a square of pixels.
ShownSample shown(std::span<const float> input, const ImageShape& shape) {
  const int side = (std::max(shape.height, shape.width) + kMaxShownSide - 1) / kMaxShownSide;
  ShownSample sample;
  sample.shape = {shape.channels, std::max(shape.height / side, 1), std::max(shape.width / side, 1)};
  for (int y = 0; y < sample.shape.height; ++y)
    for (int x = 0; x < sample.shape.width; ++x)
      for (int c = 0; c < shape.channels; ++c) {
        float sum = 0;
        for (int i = 0; i < side * side; ++i) {
          const int row = std::min(y * side + i / side, shape.height - 1);
          const int column = std::min(x * side + i % side, shape.width - 1);
          sum += input[(static_cast<std::size_t>(c) * static_cast<std::size_t>(shape.height) +
                        static_cast<std::size_t>(row)) *
                           static_cast<std::size_t>(shape.width) +
                       static_cast<std::size_t>(column)];
        }
        const float mean = sum / static_cast<float>(side * side);
        sample.pixels.push_back(static_cast<std::uint8_t>(std::lround(std::clamp(mean, 0.f, 1.f) * kWhite)));
      }
  return sample;
}

void stretch(std::span<float> values) {
  const auto [least, most] = std::ranges::minmax_element(values);
  const float low = *least, range = *most - *least;
  for (float& value : values) value = range > 0 ? (value - low) / range : 0;
}

bool are_pictures(const ImageShape& shape) {
  return (shape.channels == 1 || shape.channels == 3) && shape.height >= 2 && shape.width >= 2;
}

Recipe without_normalization(Recipe recipe) {
  recipe.normalization = Normalization::kNone;
  return recipe;
}

std::vector<ShownSample> show(Batch& batch, const Recipe& recipe) {
  const ImageShape& shape = recipe.input;
  std::vector<ShownSample> samples;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const std::span<float> input = batch.images.span().subspan(i * shape.elements(), shape.elements());
    if (recipe.floats) stretch(input);
    samples.push_back(shown(input, shape));
    samples.back().label = static_cast<std::uint16_t>(batch.labels[i]);
  }
  return samples;
}

}  // namespace

std::vector<ShownSample> shown_samples(const Dataset& data, const Recipe& trained, std::uint64_t seed,
                                       std::size_t most) {
  Batch batch;
  batch.count = static_cast<int>(std::min(most, data.train.count()));
  if (!are_pictures(trained.input) || batch.count == 0) return {};
  SampleStream stream(seed, data.train.count());
  fill_training_batch(data, without_normalization(trained), stream, seed, 0, batch);
  return show(batch, trained);
}

std::optional<ShownSample> shown_test_sample(const Dataset& data, const Recipe& evaluated, std::size_t index) {
  if (!are_pictures(evaluated.input)) return std::nullopt;
  Batch batch;
  batch.count = 1;
  fill_evaluation_batch(data, without_normalization(evaluated), index, batch);
  if (batch.count == 0) return std::nullopt;
  return show(batch, evaluated).front();
}

}  // namespace tg::engine

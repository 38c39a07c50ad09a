// From the bytes of one image to the engine's input, as the paper's own code does it. Only + - * / sqrt are used, so
// every node gets the same floats. Pure; any thread. `out` holds input.elements() floats, CHW.
#pragma once

#include <cstdint>
#include <span>

#include "engine/model.h"

namespace tg::engine {

// (x/255 - 0.5) * 2.
void symmetric(std::span<const std::uint8_t> pixels, std::span<float> out);

// What augmentation decides about one image; a function of (seed, stream position) alone.
struct Augmentation {
  int top = 0, left = 0;  // of the crop, pixels
  bool flip = false;      // left to right
  double brightness = 0;  // added to x/255, in [-63/255, 63/255)
  double contrast = 1;    // x = (x - mean of its channel) * contrast + mean, in [0.2, 1.8)
};
Augmentation draw_augmentation(std::uint64_t seed, std::uint64_t position, const ImageShape& stored,
                               const ImageShape& input);
// The crop in the middle and nothing else: evaluation.
Augmentation centre_crop(const ImageShape& stored, const ImageShape& input);

// Crop, flip, brightness, contrast; then per-image standardization, (x - mean) / max(deviation, 1/sqrt(n)) over the n
// values of all channels. input is no larger than stored and has as many channels.
void augment(std::span<const std::uint8_t> pixels, const ImageShape& stored, const ImageShape& input,
             const Augmentation& how, std::span<float> out);

}  // namespace tg::engine

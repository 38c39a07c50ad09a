// Samples as the network sees them, for people to look at. Any thread; reads the samples' files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/dataset.h"
#include "engine/recipe.h"

namespace tg::engine {

inline constexpr int kMaxShownSide = 96;  // pixels; larger ones are made smaller by whole factors

struct ShownSample {
  std::uint16_t label = 0;
  ImageShape shape;                  // 1 or 3 channels
  std::vector<std::uint8_t> pixels;  // row by row, the channels of a pixel together
};

// The first so many of a run with this seed: cropped, flipped and coloured as its first steps will have them, without
// the normalization. Floats are stretched from their least to their most value. None of samples that are no pictures.
// Throws as fill_training_batch.
std::vector<ShownSample> shown_samples(const Dataset& data, const Recipe& trained, std::uint64_t seed,
                                       std::size_t most);

// A test sample as evaluation has it; the rest as above. None of a damaged file.
std::optional<ShownSample> shown_test_sample(const Dataset& data, const Recipe& evaluated, std::size_t index);

}  // namespace tg::engine

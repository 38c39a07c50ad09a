// The synthetic set: 28x28 images of digits, drawn from a seed the same way on every node, so that a run needs no
// files.
//
// An image is a glyph (glyphs.h) in one of its styles, its points shaken, bent by a smooth quadratic field, put through
// a random affine map, drawn with a pen of random width and ink, over stray strokes and noise. Hard enough that a
// linear model stays below 93 %, easy enough that LeNet passes 98 % within a thousand steps (a test holds both). Draws
// come from Philox at (seed, train or test, image), so sets of different sizes share their first images, and training
// and test images never share a draw. Arithmetic is + - * / sqrt in double: the same bytes on every machine. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/data/draws.h"
#include "engine/dataset.h"

namespace tg::engine {

inline constexpr std::uint32_t kDigitsVersion = 1;   // raised whenever the same seed gives other images
inline constexpr int kDigitsSide = 28;               // pixels
inline constexpr std::size_t kDigitsTrain = 20'000;  // images, unless the job sets a number
inline constexpr std::size_t kDigitsTest = 4'000;
inline constexpr std::size_t kMaxDigits = 1'000'000;  // images of either set: 784 MB

// Draws one image into `pixels` (28 * 28 bytes) and returns its label.
std::uint8_t draw_digit(std::uint64_t seed, DrawDomain domain, std::uint64_t index, std::span<std::uint8_t> pixels);

// Refuses sizes above kMaxDigits.
Result<Dataset> make_digits(const DatasetOptions& options);

}  // namespace tg::engine

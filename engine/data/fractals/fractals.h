// Fractal pictures from a seed, at any size and number of classes: a class is a system of affine maps, a picture the
// orbit of a variant of them. How the points, the pictures and the variants are made: README.md beside this file.
// Pictures are drawn when they are asked for. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/data/draws.h"
#include "engine/data/fractals/maps.h"
#include "engine/data/picture.h"
#include "engine/dataset.h"

namespace tg::engine {

inline constexpr std::uint32_t kFractalsVersion = 1;  // raised whenever the same seed gives other pictures
inline constexpr int kFractalClasses = 10;            // unless the job says otherwise
inline constexpr int kFractalSize = 224;              // pixels of a side
inline constexpr int kLeastFractalSize = 16;
inline constexpr std::size_t kFractalTrainPerClass = 100, kFractalTestPerClass = 20;

// Picture `index` of a class, of size x size pixels in RGB. domain: kFractalTrain or kFractalTest.
void draw_fractal(const AffineMaps& maps, std::uint64_t seed, DrawDomain domain, std::uint64_t index, int size,
                  Picture& picture);

// Errors: a size or a number outside of its range.
Result<Dataset> make_fractals(const DatasetOptions& options);

}  // namespace tg::engine

// Fractal pictures from a seed, at any size and number of classes: a class is a system of affine maps, a picture the
// orbit of a variant of them. README.md beside this file says how points, pictures and variants are made.
// Pictures are drawn on demand. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/data/draws.h"
#include "engine/data/fractals/maps.h"
#include "engine/data/picture.h"
#include "engine/dataset.h"

namespace tg::engine {

inline constexpr std::uint32_t kFractalsVersion = 1;  // raised whenever the same seed gives other pictures
inline constexpr int kFractalClasses = 10;            // unless the job sets a number
inline constexpr int kFractalSize = 224;              // pixels of a side
inline constexpr int kMinFractalSize = 16;
inline constexpr std::size_t kFractalTrainPerClass = 100, kFractalTestPerClass = 20;

// Draws picture `index` of a class, size x size pixels in RGB. domain: kFractalTrain or kFractalTest.
void draw_fractal(const AffineMaps& maps, std::uint64_t seed, DrawDomain domain, std::uint64_t index, int size,
                  Picture& picture);

// Refuses a size or a number outside its range.
Result<Dataset> make_fractals(const DatasetOptions& options);

}  // namespace tg::engine

// The arguments of this folder's launches: shapes, and the loss's result. Plain values without CUDA, so that the
// kernels' bodies and their tests use the same ones.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/graph/graph.h"

namespace tg::engine::cuda {

// NCHW: `samples` images of `channels` planes of `pixels` values. A row of features is an image of one pixel.
struct Planes {
  std::size_t samples, channels, pixels;
  std::size_t elements() const { return samples * channels * pixels; }
};

struct Sides {
  int height = 0, width = 0;
};

// Row-major matrices, one after another.
struct Matrices {
  std::size_t count, rows, columns;
};

// A bf16 value as the device's libraries store it; bodies/bf16.h has its arithmetic.
struct Bf16 {
  std::uint16_t bits;
};

// Pooling; images are samples * channels planes.
struct PoolingShape {
  int planes = 0;
  Sides input, output;
  Window window;
};

// Spans of rows or columns (engine/cpu/windows.h makes them), one for each output row or column;
// both ends never decrease. Arrays on the device.
struct Spans {
  const int *first, *last;
};
struct AverageShape {
  int planes = 0;
  Sides input, output;
  Spans rows, columns;
};

struct NormalizationShape {
  int samples = 0, channels = 0, pixels = 0;
  LocalResponseNormalization layer;  // beta 0.75 only, in square roots as engine/cpu/lrn/lrn.h
};

// Dropout over rows of features.
struct DropoutShape {
  std::size_t samples = 0, features = 0;
  std::uint32_t threshold = 0, index_of_operator = 0;
  float scale = 0;
  std::uint64_t seed = 0;
};

struct LossShape {
  int rows = 0, classes = 0;  // rows of the logits; labels after the `counted` rows are ignored
  int counted = 0;
  double smoothing = 0;
  const double* class_weights = nullptr;  // on the device: of a row's loss, by its label; null: 1 each
};

// Sums over the counted rows.
struct LossResult {
  double plain = 0, trained = 0;  // sums of cross-entropy, without and with smoothing and weights
  std::uint64_t correct = 0, correct_5 = 0;
};

}  // namespace tg::engine::cuda

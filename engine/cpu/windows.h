// Means over parts of NHWC images, forward and backward: adaptive averages, which oneDNN has not. Sums are
// taken row by row, left to right, so the bits are the same on every machine and number of threads. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/graph.h"

namespace tg::engine::cpu {

// Pixels [first, last) along one side.
struct Span {
  std::size_t first, last;
  std::size_t size() const { return last - first; }
};
// The span of each output along one side.
std::vector<Span> adaptive_spans(int inputs, int outputs);

struct Windows {
  std::size_t channels, height, width;  // the input's
  std::vector<Span> rows, columns;      // the outputs'

  // For one sample: y[r][c] = mean of x over rows[r] x columns[c].
  void forward(const float* x, float* y) const;
  // Overwrites dx.
  void backward(const float* dy, float* dx) const;
};

}  // namespace tg::engine::cpu

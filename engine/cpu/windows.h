// Means over windows of NHWC images, forward and backward: average pooling and adaptive averages. oneDNN has no
// adaptive averages, and its pooling lacks PyTorch's divisor if `ceil` lets windows reach beyond the padding. Sums are
// taken row by row, left to right, so the bits are the same on every machine and number of threads. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/graph.h"

namespace tg::engine::cpu {

// Pixels [first, last) along one side, and the length that counts in the divisor.
struct Span {
  std::size_t first, last, divisor;
};
// The span of each output along one side.
std::vector<Span> pooling_spans(int inputs, int outputs, int before, int after, const AveragePooling& layer);
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

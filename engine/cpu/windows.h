// Means over windows of NHWC images, forward and backward: average pooling and adaptive averages. oneDNN has none of
// the second, and of the first not PyTorch's divisor where `ceil` lets windows reach beyond the padding. Sums are taken
// row by row, left to right, so the bits are the same on every machine and number of threads. Pure; any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/graph/graph.h"

namespace tg::engine::cpu {

// Pixels [first, last) along one side, and the length that counts for the divisor.
struct Span {
  std::size_t first, last, divisor;
};
// Of each output, along one side.
std::vector<Span> pooling_spans(int inputs, int outputs, int before, int after, const AveragePooling& layer);
std::vector<Span> adaptive_spans(int inputs, int outputs);

struct Windows {
  std::size_t channels, height, width;  // of the input
  std::vector<Span> rows, columns;      // of the outputs

  // One sample: y[r][c] = mean of x over rows[r] x columns[c].
  void forward(const float* x, float* y) const;
  // dx is overwritten.
  void backward(const float* dy, float* dx) const;
};

}  // namespace tg::engine::cpu

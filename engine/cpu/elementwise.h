// Small kernels on plain floats: additions, copies and comparisons. Memory limits their speed, not the processor, so
// the compiler's vectors are good enough, and the bits are the same on every machine. Pure; any thread; spans of one
// length.
#pragma once

#include <cstddef>

namespace tg::engine::cpu {

// y = a + b, or with `relu` max(a + b, 0); y may be a or b.
void add(const float* a, const float* b, float* y, std::size_t count, bool relu);
// Computes y += x.
void accumulate(const float* x, float* y, std::size_t count);
// Sets gradient to 0 where value is not above 0.
void mask(const float* value, float* gradient, std::size_t count);

// Rows of `count` floats, `x_stride` and `y_stride` apart: y = x, or y += x.
struct Rows {
  std::size_t rows, count, x_stride, y_stride;
};
void copy_rows(const Rows& shape, const float* x, float* y);
void accumulate_rows(const Rows& shape, const float* x, float* y);

}  // namespace tg::engine::cpu

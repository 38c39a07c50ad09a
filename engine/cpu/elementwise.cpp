#include "engine/cpu/elementwise.h"

#include <cstring>

namespace tg::engine::cpu {

void add(const float* a, const float* b, float* y, std::size_t count, bool relu) {
  if (relu) {
    for (std::size_t i = 0; i < count; ++i) {
      const float sum = a[i] + b[i];
      y[i] = sum > 0 ? sum : 0.0F;
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
  }
}

void accumulate(const float* __restrict x, float* __restrict y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
}

void mask(const float* __restrict value, float* __restrict gradient, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) gradient[i] = value[i] > 0 ? gradient[i] : 0.0F;
}

void copy_rows(const Rows& shape, const float* x, float* y) {
  for (std::size_t row = 0; row < shape.rows; ++row)
    std::memcpy(y + row * shape.y_stride, x + row * shape.x_stride, shape.count * sizeof(float));
}

void accumulate_rows(const Rows& shape, const float* x, float* y) {
  for (std::size_t row = 0; row < shape.rows; ++row)
    accumulate(x + row * shape.x_stride, y + row * shape.y_stride, shape.count);
}

}  // namespace tg::engine::cpu

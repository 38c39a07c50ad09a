// Means over spans of rows and columns. Forward adds row by row, left to right; backward adds the windows that hold a
// pixel in their order: the order of engine/cpu/windows.cpp, so the bits are the CPU's.
#pragma once

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// One thread computes one output.
struct Average {
  Average(const AverageShape& of, const float* images, float* to)
      : shape(of),
        by_plane(static_cast<std::uint64_t>(of.output.height) * static_cast<std::uint64_t>(of.output.width)),
        by_row(static_cast<std::uint64_t>(of.output.width)),
        x(images),
        y(to) {}

  AverageShape shape;
  Divider by_plane, by_row;
  const float* x;
  float* y;

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(shape.planes) * static_cast<std::uint64_t>(shape.output.height) *
           static_cast<std::uint64_t>(shape.output.width);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts place = by_row.of_small(plane.remainder);
    const std::uint64_t row = place.quotient;
    const std::uint32_t column = place.remainder;
    const float* const image = x + plane.quotient * static_cast<std::uint64_t>(shape.input.height * shape.input.width);
    const int top = shape.rows.first[row], bottom = shape.rows.last[row];
    const int left = shape.columns.first[column], right = shape.columns.last[column];
    float sum = 0;
    for (int r = top; r < bottom; ++r)
      for (int c = left; c < right; ++c) sum += image[r * shape.input.width + c];
    y[thread] = sum / static_cast<float>((bottom - top) * (right - left));
  }
};

// One thread computes one pixel of the input.
struct AverageGradient {
  AverageGradient(const AverageShape& of, const float* gradient, float* to)
      : shape(of),
        by_plane(static_cast<std::uint64_t>(of.input.height) * static_cast<std::uint64_t>(of.input.width)),
        by_row(static_cast<std::uint64_t>(of.input.width)),
        dy(gradient),
        dx(to) {}

  AverageShape shape;
  Divider by_plane, by_row;
  const float* dy;
  float* dx;

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(shape.planes) * static_cast<std::uint64_t>(shape.input.height) *
           static_cast<std::uint64_t>(shape.input.width);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts place = by_row.of_small(plane.remainder);
    const int row = static_cast<int>(place.quotient), column = static_cast<int>(place.remainder);
    const int outputs = shape.output.height, side = shape.output.width;
    const int top = first_over(shape.rows, outputs, row), left = first_over(shape.columns, side, column);
    const float* const image = dy + plane.quotient * static_cast<std::uint64_t>(outputs * side);
    float sum = 0;
    for (int r = top; r < outputs && shape.rows.first[r] <= row; ++r)
      for (int c = left; c < side && shape.columns.first[c] <= column; ++c)
        sum += image[r * side + c] / static_cast<float>((shape.rows.last[r] - shape.rows.first[r]) *
                                                        (shape.columns.last[c] - shape.columns.first[c]));
    dx[thread] = sum;
  }

 private:
  // The first span that ends after the pixel. The spans that hold the pixel are that one and the next ones that begin
  // early enough.
  TG_HOST_DEVICE static int first_over(const Spans& spans, int count, int pixel) {
    int first = 0;
    while (count > 0) {
      const int half = count / 2;
      if (spans.last[first + half] <= pixel) {
        first += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return first;
  }
};

}  // namespace tg::engine::cuda::bodies

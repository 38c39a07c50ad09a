// Max pooling over windows that are clipped to the image. The first of the largest in row order is chosen, and its
// place in the window (row * kernel + column) is kept for backward. NaN is never chosen; a window of NaNs only, or with
// no value above the least float, gives the least float and place 0. oneDNN does the same.
#pragma once

#include <cfloat>

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// One thread computes one output.
struct MaxPooling {
  MaxPooling(const PoolingShape& of, const float* images, float* to, std::uint8_t* places)
      : shape(of),
        by_plane(static_cast<std::uint64_t>(of.output.height) * static_cast<std::uint64_t>(of.output.width)),
        by_row(static_cast<std::uint64_t>(of.output.width)),
        x(images),
        y(to),
        chosen(places) {}

  PoolingShape shape;
  Divider by_plane, by_row;
  const float* x;
  float* y;
  std::uint8_t* chosen;  // or null

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(shape.planes) * static_cast<std::uint64_t>(shape.output.height) *
           static_cast<std::uint64_t>(shape.output.width);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Window& window = shape.window;
    const int height = shape.input.height, width = shape.input.width;
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts row = by_row.of_small(plane.remainder);
    const int top = static_cast<int>(row.quotient) * window.stride - window.padding.top;
    const int left = static_cast<int>(row.remainder) * window.stride - window.padding.left;
    const float* const image = x + plane.quotient * static_cast<std::uint64_t>(height * width);
    float highest = -FLT_MAX;
    int place = 0;
    for (int i = 0; i < window.kernel; ++i) {
      const int r = top + i * window.dilation;
      if (r < 0 || r >= height) continue;
      for (int j = 0; j < window.kernel; ++j) {
        const int c = left + j * window.dilation;
        if (c < 0 || c >= width) continue;
        const float value = image[r * width + c];
        if (value > highest) {
          highest = value;
          place = i * window.kernel + j;
        }
      }
    }
    y[thread] = highest;
    if (chosen != nullptr) chosen[thread] = static_cast<std::uint8_t>(place);
  }
};

// One thread computes one pixel of the input: it looks at the windows that hold the pixel, and adds the gradients of
// those that chose it, in their order.
struct MaxPoolingGradient {
  MaxPoolingGradient(const PoolingShape& of, const std::uint8_t* places, const float* gradient, const float* values,
                     float* to)
      : shape(of),
        by_plane(static_cast<std::uint64_t>(of.input.height) * static_cast<std::uint64_t>(of.input.width)),
        by_row(static_cast<std::uint64_t>(of.input.width)),
        by_stride(static_cast<std::uint64_t>(of.window.stride)),
        by_dilation(static_cast<std::uint64_t>(of.window.dilation)),
        chosen(places),
        dy(gradient),
        y(values),
        dx(to) {}

  PoolingShape shape;
  Divider by_plane, by_row, by_stride, by_dilation;
  const std::uint8_t* chosen;
  const float *dy, *y;  // y: or null
  float* dx;

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(shape.planes) * static_cast<std::uint64_t>(shape.input.height) *
           static_cast<std::uint64_t>(shape.input.width);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts row = by_row.of_small(plane.remainder);
    const int from_top = static_cast<int>(row.quotient) + shape.window.padding.top;
    const int from_left = static_cast<int>(row.remainder) + shape.window.padding.left;
    const Range rows = windows_over(from_top, shape.output.height);
    const Range columns = windows_over(from_left, shape.output.width);
    const std::uint64_t image = plane.quotient * static_cast<std::uint64_t>(shape.output.height * shape.output.width);
    float sum = 0;
    for (int r = rows.first; r < rows.last; ++r) {
      const int i = place_at(from_top - r * shape.window.stride);
      if (i < 0) continue;
      TG_NO_UNROLL
      for (int c = columns.first; c < columns.last; ++c) {
        const int j = place_at(from_left - c * shape.window.stride);
        if (j < 0) continue;
        const std::uint64_t at = image + static_cast<std::uint64_t>(r * shape.output.width + c);
        if (chosen[at] == i * shape.window.kernel + j && (y == nullptr || y[at] > 0)) sum += dy[at];
      }
    }
    dx[thread] = sum;
  }

 private:
  struct Range {
    int first, last;
  };
  // The windows along one side that reach over a pixel `at` pixels after the beginning of the padding.
  TG_HOST_DEVICE Range windows_over(int at, int outputs) const {
    const int reach = shape.window.dilation * (shape.window.kernel - 1) + 1;
    const int first =
        at < reach ? 0 : static_cast<int>(by_stride.of_small(static_cast<std::uint32_t>(at - reach)).quotient) + 1;
    const int last = static_cast<int>(by_stride.of_small(static_cast<std::uint32_t>(at)).quotient) + 1;
    return {first, last < outputs ? last : outputs};
  }
  // The pixel's place in a window that reaches over it; -1 if it lies between two pixels of a dilated window.
  TG_HOST_DEVICE int place_at(int offset) const {
    const Divider::Parts place = by_dilation.of_small(static_cast<std::uint32_t>(offset));
    return place.remainder == 0 ? static_cast<int>(place.quotient) : -1;
  }
};

}  // namespace tg::engine::cuda::bodies

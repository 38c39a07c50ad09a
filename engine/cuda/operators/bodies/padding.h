// Adds padding of zeros around images, and removes it.
#pragma once

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// One thread writes one pixel of the padded images.
struct Pad {
  Pad(int of_planes, const Sides& sides, const Padding& around, const float* from, float* to)
      : planes(of_planes),
        inner(sides),
        outer{sides.height + around.top + around.bottom, sides.width + around.left + around.right},
        padding(around),
        by_plane(static_cast<std::uint64_t>(outer.height) * static_cast<std::uint64_t>(outer.width)),
        by_row(static_cast<std::uint64_t>(outer.width)),
        x(from),
        padded(to) {}

  int planes;
  Sides inner, outer;
  Padding padding;
  Divider by_plane, by_row;
  const float* x;
  float* padded;

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(planes) * static_cast<std::uint64_t>(outer.height) *
           static_cast<std::uint64_t>(outer.width);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts place = by_row.of_small(plane.remainder);
    const int row = static_cast<int>(place.quotient) - padding.top;
    const int column = static_cast<int>(place.remainder) - padding.left;
    const bool inside = row >= 0 && row < inner.height && column >= 0 && column < inner.width;
    const float* const image = x + plane.quotient * static_cast<std::uint64_t>(inner.height * inner.width);
    padded[thread] = inside ? image[row * inner.width + column] : 0.0F;
  }
};

// One thread writes one pixel of the images without padding.
struct Unpad {
  Unpad(int of_planes, const Sides& sides, const Padding& around, const float* from, float* to)
      : planes(of_planes),
        inner(sides),
        outer{sides.height + around.top + around.bottom, sides.width + around.left + around.right},
        padding(around),
        by_plane(static_cast<std::uint64_t>(inner.height) * static_cast<std::uint64_t>(inner.width)),
        by_row(static_cast<std::uint64_t>(inner.width)),
        padded(from),
        x(to) {}

  int planes;
  Sides inner, outer;
  Padding padding;
  Divider by_plane, by_row;
  const float* padded;
  float* x;

  std::uint64_t threads() const {
    return static_cast<std::uint64_t>(planes) * static_cast<std::uint64_t>(inner.height) *
           static_cast<std::uint64_t>(inner.width);
  }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts place = by_row.of_small(plane.remainder);
    const int row = static_cast<int>(place.quotient) + padding.top;
    const int column = static_cast<int>(place.remainder) + padding.left;
    x[thread] = padded[plane.quotient * static_cast<std::uint64_t>(outer.height * outer.width) +
                       static_cast<std::uint64_t>(row * outer.width + column)];
  }
};

}  // namespace tg::engine::cuda::bodies

// Adds padding of zeros around images, and removes it.
#pragma once

#include "engine/cuda/operators/bodies/divider.h"
#include "engine/cuda/operators/bodies/grid.h"
#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda::bodies {

// One thread writes one pixel: of the padded images, or of those without padding.
template <bool kPads>
struct Padder {
  Padder(int of_planes, const Sides& inner, const Padding& around, const float* images, float* other_images)
      : planes(of_planes),
        from(kPads ? inner : padded(inner, around)),
        to(kPads ? padded(inner, around) : inner),
        down(kPads ? -around.top : around.top),
        right(kPads ? -around.left : around.left),
        by_plane(pixels(to)),
        by_row(static_cast<std::uint64_t>(to.width)),
        x(images),
        y(other_images) {}

  static Sides padded(const Sides& inner, const Padding& around) {
    return {inner.height + around.top + around.bottom, inner.width + around.left + around.right};
  }
  static std::uint64_t pixels(const Sides& sides) {
    return static_cast<std::uint64_t>(sides.height) * static_cast<std::uint64_t>(sides.width);
  }

  int planes;
  Sides from, to;
  int down, right;  // from a pixel's place in `to` to its place in `from`
  Divider by_plane, by_row;
  const float* x;
  float* y;

  std::uint64_t threads() const { return static_cast<std::uint64_t>(planes) * pixels(to); }
  TG_HOST_DEVICE void operator()(std::uint64_t thread) const {
    const Divider::Parts plane = by_plane(thread);
    const Divider::Parts place = by_row.of_small(plane.remainder);
    const int row = static_cast<int>(place.quotient) + down;
    const int column = static_cast<int>(place.remainder) + right;
    const bool inside = row >= 0 && row < from.height && column >= 0 && column < from.width;
    const float* const image = x + plane.quotient * static_cast<std::uint64_t>(from.height * from.width);
    y[thread] = inside ? image[row * from.width + column] : 0.0F;
  }
};
using Pad = Padder<true>;
using Unpad = Padder<false>;

}  // namespace tg::engine::cuda::bodies

#include "daemon/simulate/gradient_shape.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tg::daemon {
namespace {

std::size_t bin_of(double value, double largest) {
  constexpr auto kBins = static_cast<double>(GradientShape::kBins);
  if (largest == 0) return GradientShape::kBins / 2;
  const double place = std::floor((value + largest) / (2 * largest) * kBins);
  return static_cast<std::size_t>(std::clamp(place, 0.0, kBins - 1));
}

struct Sums {
  double absolute = 0, squares = 0;
  void add(double value) {
    absolute += std::abs(value);
    squares += value * value;
  }
  void finish(GradientShape::Side& side) const {
    side.length = std::sqrt(squares);
    side.gap = squares > 0 ? side.max_abs * absolute / squares : 0;
  }
};

}  // namespace

GradientShape shape_of(const std::vector<ClippedSegment>& parts) {
  GradientShape shape;
  for (const ClippedSegment& part : parts)
    for (const float value : part.values) {
      const double size = std::abs(value);
      shape.before.max_abs = std::max(shape.before.max_abs, size);
      shape.clipped.max_abs = std::max(shape.clipped.max_abs, std::min(size, static_cast<double>(part.clip)));
    }
  Sums before, clipped;
  double product = 0;
  for (const ClippedSegment& part : parts)
    for (const float value : part.values) {
      const float bounded = std::clamp(value, -part.clip, part.clip);
      before.add(value);
      clipped.add(bounded);
      product += static_cast<double>(value) * bounded;
      shape.clipped_count += bounded != value;
      ++shape.before.histogram[bin_of(value, shape.before.max_abs)];
      ++shape.clipped.histogram[bin_of(bounded, shape.before.max_abs)];
    }
  before.finish(shape.before);
  clipped.finish(shape.clipped);
  if (before.squares > 0) shape.length_ratio = shape.clipped.length / shape.before.length;
  if (before.squares > 0 && clipped.squares > 0) {
    const double cosine = product / (shape.before.length * shape.clipped.length);
    shape.angle_degrees = std::acos(std::clamp(cosine, -1.0, 1.0)) * 180 / std::numbers::pi;
  }
  return shape;
}

}  // namespace tg::daemon

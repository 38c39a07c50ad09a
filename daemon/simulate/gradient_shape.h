// What clipping does to a gradient, and how much ternary codes would add to it. Pure; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tg::daemon {

// Values that are clipped to [-clip, clip]; +inf: they are not.
struct ClippedSegment {
  std::span<const float> values;
  float clip = 0;
};

struct GradientShape {
  static constexpr std::size_t kBins = 64;
  using Histogram = std::array<std::uint64_t, kBins>;
  struct Side {
    double max_abs = 0;
    double length = 0;  // L2
    // max|g| * L1 / L2^2: the square of the length of the codes of eq. (1), scaled, is on average this many times the
    // gradient's. 0 for a gradient of zeros.
    double gap = 0;
    Histogram histogram{};  // equal bins from -max|g| to max|g|, of the gradient before clipping for both
  };
  Side before, clipped;             // the clipped one is what the codes are on average, eq. (10)
  double length_ratio = 1;          // clipped to before
  double angle_degrees = 0;         // between them
  std::uint64_t clipped_count = 0;  // elements beyond their bound
};

// All parts as one vector.
GradientShape shape_of(const std::vector<ClippedSegment>& parts);

}  // namespace tg::daemon

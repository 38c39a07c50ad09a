#include "engine/data/digits/canvas.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

int pixel_at_least(double v) { return static_cast<int>(std::clamp(v, 0.0, static_cast<double>(Canvas::kSide))); }

}  // namespace

void Canvas::draw_line(CanvasPoint from, CanvasPoint to, const Pen& pen) {
  const double reach = pen.radius + pen.edge / 2;
  TG_CHECK(reach > 0 && reach <= kMaxReach, pen.radius, pen.edge);
  const double dx = to.x - from.x, dy = to.y - from.y;
  const double length_squared = dx * dx + dy * dy;
  const int x_first = pixel_at_least(std::min(from.x, to.x) - reach);
  const int x_last = pixel_at_least(std::max(from.x, to.x) + reach + 1);
  const int y_first = pixel_at_least(std::min(from.y, to.y) - reach);
  const int y_last = pixel_at_least(std::max(from.y, to.y) + reach + 1);
  for (int y = y_first; y < y_last; ++y) {
    for (int x = x_first; x < x_last; ++x) {
      const double px = x - from.x, py = y - from.y;
      const double along = length_squared > 0 ? std::clamp((px * dx + py * dy) / length_squared, 0.0, 1.0) : 0.0;
      const double ex = px - along * dx, ey = py - along * dy;
      const double distance_squared = ex * ex + ey * ey;
      if (distance_squared >= reach * reach) continue;
      const double cover = std::clamp((pen.radius - std::sqrt(distance_squared)) / pen.edge + 0.5, 0.0, 1.0);
      double& pixel = ink_[static_cast<std::size_t>(y) * kSide + static_cast<std::size_t>(x)];
      pixel = std::max(pixel, cover * pen.ink);
    }
  }
}

}  // namespace tg::engine

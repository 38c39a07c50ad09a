// A small grey image that strokes are drawn on: keeps, for each pixel, the most ink that any stroke left there. The pen
// is round with a soft edge. Coordinates are pixels, the centre of pixel (0, 0) at (0, 0). One object per thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace tg::engine {

struct CanvasPoint {
  double x = 0, y = 0;
};

struct Pen {
  double radius = 1;  // pixels, to where the ink is half
  double edge = 1;    // pixels over which it fades
  double ink = 255;   // at full cover
};

class Canvas {
 public:
  static constexpr int kSide = 28;
  static constexpr double kMaxReach = 8;  // pixels: bound of radius + edge / 2

  void draw_line(CanvasPoint from, CanvasPoint to, const Pen& pen);
  std::span<const double, kSide * kSide> ink() const { return ink_; }

 private:
  std::array<double, kSide * kSide> ink_{};
};

}  // namespace tg::engine

// The digits 0 to 9 as pen strokes in several styles; the synthetic set distorts them. A stroke is a smooth curve
// (Catmull-Rom) through its points; a corner is where one stroke ends and the next begins. x grows right, y down; a
// glyph fills about 15..85 by 0..100. A stroke whose first and last points agree is closed. Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tg::engine {

struct GlyphPoint {
  std::int8_t x, y;
  bool operator==(const GlyphPoint&) const = default;
};
using Stroke = std::vector<GlyphPoint>;
using Glyph = std::vector<Stroke>;

// The styles of a digit, at least two.
std::span<const Glyph> glyphs_of(int digit);

}  // namespace tg::engine

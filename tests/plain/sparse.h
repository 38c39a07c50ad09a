// Rules that send few elements.
#pragma once

#include "tests/plain/rule.h"

namespace tg::plain {

// The k largest |a| of a segment as they are, k = `density` of them and at least 1. With feedback a = g + what was not
// sent before.
class Largest final : public SegmentRule {
 public:
  Largest(double density, bool feedback) : density_(density), feedback_(feedback) {}
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;
  std::size_t own_bytes() const override { return feedback_ ? errors_.bytes() : 0; }

 private:
  const double density_;
  const bool feedback_;
  OwnState errors_;
};

// ATOMO by entries: `density` of them on average, drawn.
class Atomo final : public SegmentRule {
 public:
  explicit Atomo(double density) : density_(density) {}
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;

 private:
  const double density_;
};

// The k-th largest |value|, 1 <= k <= size.
float kth_largest(std::span<const float> values, std::size_t k);

}  // namespace tg::plain

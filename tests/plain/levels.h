// Rules whose codes are whole numbers with a unit that all members share, drawn so that no value is rounded to one
// side.
#pragma once

#include "tests/plain/rule.h"

namespace tg::plain {

// -L .. L, L for the largest |g| of all members' bucket.
class Qsgd final : public SegmentRule {
 public:
  Qsgd(int levels, std::size_t bucket) : levels_(levels), bucket_(bucket) {}
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;

 private:
  const int levels_;
  const std::size_t bucket_;  // elements
};

// 16 bits with the point in the same place for all.
class Fixed16 final : public SegmentRule {
 public:
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;
};

// 2^k levels from -S/2 to S/2, S twice the largest |g| of all members' segment; none of them is 0.
class Dorefa final : public SegmentRule {
 public:
  explicit Dorefa(int bits) : most_((1 << bits) - 1) {}
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;

 private:
  const int most_;
};

}  // namespace tg::plain

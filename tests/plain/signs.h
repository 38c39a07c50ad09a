// Rules that send signs.
#pragma once

#include "tests/plain/rule.h"

namespace tg::plain {

// 1-bit SGD with error feedback. A column is what leads to one output: a scaler for its positive numbers, one for its
// negative ones. Without the cold start in floats, and without the second coding of the sum that its paper has.
class OneBit final : public SegmentRule {
 public:
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;
  std::size_t own_bytes() const override { return errors_.bytes(); }

 private:
  OwnState errors_;
};

// signSGD with majority vote: -1, 1, or 0 where the votes are even; a gradient of 0 votes 1. The learning rate is the
// size of a step.
class MajorityVote final : public SegmentRule {
 public:
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;
};

// Signs of gradients with annealed noise, and from step `until` on float32 at the rate that continues them. Its paper
// has one worker; the mean of the members' signs is ours.
class DitheredSign final : public Rule {
 public:
  explicit DitheredSign(std::uint64_t until) : until_(until) {}
  Bits mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
            std::span<float> mean) override;

 private:
  const std::uint64_t until_;
  double rate_ = 0, weight_ = 0;  // what continues the signs, and how much of it has come
};

}  // namespace tg::plain

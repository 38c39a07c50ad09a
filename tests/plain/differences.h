// DIANA: members send ternary codes of how their gradient differs from what they have learned of it.
#pragma once

#include "tests/plain/rule.h"

namespace tg::plain {

enum class Norm { kLargest, kEuclidean };

// Each member has its own scaler, the norm of a segment. Without learning it is DQGD with that norm.
class Diana final : public SegmentRule {
 public:
  Diana(Norm norm, bool learns) : norm_(norm), learns_(learns) {}
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;
  std::size_t own_bytes() const override { return learned_.bytes() + mean_learned_.bytes(); }

 private:
  const Norm norm_;
  const bool learns_;
  OwnState learned_, mean_learned_;  // h_r of each member; h, which all have alike
};

}  // namespace tg::plain

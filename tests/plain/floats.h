// Rules that send floats, and one whose members do not wait for each other.
#pragma once

#include <deque>

#include "tests/plain/rule.h"

namespace tg::plain {

// The nearest binary16, ties to even; infinite beyond its range.
float to_float16(float value);

// The mean of the members' floats, added in rank order. As float16, each is rounded, and their sum once more.
class Floats final : public SegmentRule {
 public:
  explicit Floats(bool float16) : float16_(float16) {}
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;

 private:
  const bool float16_;
};

// The same as float32, and noise of the variance that ternary codes without clipping would add.
class Noise final : public SegmentRule {
 public:
  Bits one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
           std::span<float> mean) override;
};

// Asynchronous SGD, members in turn: a gradient is applied N - 1 updates after its parameters were read.
class Asynchronous final : public Rule {
 public:
  explicit Asynchronous(std::size_t members) : members_(members) {}
  Bits mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
            std::span<float> mean) override;
  std::size_t at_a_time(std::size_t /*members*/) const override { return 1; }

 private:
  const std::size_t members_;
  std::deque<std::vector<float>> in_flight_;
};

}  // namespace tg::plain

#include "tests/plain/floats.h"

#include <algorithm>
#include <cmath>

namespace tg::plain {

// Multiples of 2^-10 of the value's power of two, and of 2^-24 below the normal ones. Scaling by powers of two is
// exact.
float to_float16(float value) {
  constexpr float kLargest = 65504;
  const int exponent = std::max(value == 0 ? 0 : std::ilogb(value), -14) - 10;
  const double units = std::nearbyint(std::ldexp(static_cast<double>(value), -exponent));
  const double half = std::ldexp(units, exponent);
  return static_cast<float>(std::fabs(half) > kLargest ? std::copysign(INFINITY, half) : half);
}

Bits Floats::one(const Round& /*round*/, std::size_t /*index*/, const engine::Segment& segment, Gradients gradients,
                 std::span<float> mean) {
  const auto on_the_wire = [this](float value) { return float16_ ? to_float16(value) : value; };
  std::ranges::fill(mean, 0.0F);
  for (const std::span<const float> gradient : gradients)
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = mean[i] + on_the_wire(gradient[i]);
  const float share = 1.0F / static_cast<float>(gradients.size());
  for (float& value : mean) value = share * on_the_wire(value);
  const double bits = (float16_ ? 16.0 : 32.0) * static_cast<double>(segment.element_count);
  return {bits, bits};
}

// Neelakantan et al. 2015: g + noise; here of the variance that codes by Wen et al. 2017, eq. (1) and (3), have: s|g| -
// g^2 for each member and element. Four uniform numbers make a bell of the variance 1/3.
Bits Noise::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                std::span<float> mean) {
  const Bits bits = Floats(false).one(round, index, segment, gradients, mean);
  double scaler = 0;
  for (const std::span<const float> gradient : gradients) scaler = std::max(scaler, largest(gradient));
  simulation::Random draws = round.draws(0, index);
  for (std::size_t i = 0; i < segment.element_count; ++i) {
    double variance = 0;
    for (const std::span<const float> gradient : gradients)
      variance += scaler * std::fabs(gradient[i]) - static_cast<double>(gradient[i]) * gradient[i];
    const std::uint64_t word = draws.word();
    const std::uint64_t sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48);
    const double bell = (static_cast<double>(sum) + 2) * 0x1p-16 - 2;
    const double members = static_cast<double>(gradients.size());
    mean[i] = static_cast<float>(mean[i] + bell * std::sqrt(3 * std::max(variance, 0.0)) / members);
  }
  return bits;
}

// Dean et al. 2012, Recht et al. 2011: w_(t+1) = w_t - rate g(w_(t-N+1)); until the first has arrived nothing changes.
Bits Asynchronous::mean(const Round& /*round*/, const engine::SegmentTable& segments, Gradients gradients,
                        std::span<float> mean) {
  in_flight_.emplace_back(gradients.front().begin(), gradients.front().end());
  std::ranges::fill(mean, 0.0F);
  if (in_flight_.size() == members_) {
    std::ranges::copy(in_flight_.front(), mean.begin());
    in_flight_.pop_front();
  }
  const double bits = 32.0 * static_cast<double>(segments.parameter_count());
  return {bits, bits};
}

}  // namespace tg::plain

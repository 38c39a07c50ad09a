#include "tests/plain/levels.h"

#include <algorithm>
#include <cmath>

namespace tg::plain {
namespace {

// Down or up, so that the mean is the value.
int stochastic_round(double value, simulation::Random& draws) {
  return static_cast<int>(std::floor(value + draws.unit()));
}

double largest_of_all(Gradients gradients) {
  double most = 0;
  for (const std::span<const float> gradient : gradients) most = std::max(most, largest(gradient));
  return most;
}

void add_mean(const Codes& codes, std::size_t first, std::size_t count, double unit, std::span<float> mean) {
  for (std::size_t i = first; i < first + count; ++i) {
    int sum = 0;
    for (const std::vector<int>& one : codes) sum += one[i];
    mean[i] = static_cast<float>(unit * sum / static_cast<double>(codes.size()));
  }
}

}  // namespace

// Alistarh et al. 2017, section 3.1: Q(g) = S sign(g) xi, xi = l/L or (l+1)/L with the mean |g|/S; S the largest of a
// bucket, as in its experiments. There each member has its own S; all share it here, so that codes can be added.
Bits Qsgd::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
               std::span<float> mean) {
  Codes codes(gradients.size(), std::vector<int>(mean.size()));
  std::vector<simulation::Random> draws;
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) draws.push_back(round.draws(rank, index));
  std::size_t buckets = 0;
  for (std::size_t at = 0; at < segment.element_count; at += bucket_, ++buckets) {
    const std::size_t count = std::min(bucket_, segment.element_count - at);
    std::vector<std::span<const float>> parts;
    for (const std::span<const float> gradient : gradients) parts.push_back(gradient.subspan(at, count));
    const double scaler = largest_of_all(parts);
    for (std::size_t rank = 0; rank < parts.size() && scaler > 0; ++rank)
      for (std::size_t i = 0; i < count; ++i) {
        const int level =
            std::min(levels_, stochastic_round(std::fabs(parts[rank][i]) * levels_ / scaler, draws[rank]));
        codes[rank][at + i] = std::signbit(parts[rank][i]) ? -level : level;
      }
    add_mean(codes, at, count, scaler / levels_, mean);
  }
  Bits bits = bits_of(round, codes, segment.element_count);
  bits.sent += 32.0 * static_cast<double>(buckets);
  return bits;
}

// Gupta et al. 2015, section 3.1: floor(x/e) e with the probability 1 - (x - floor(x))/e, else e more; cut to the range
// of 16 bits, 14 of them after the point.
Bits Fixed16::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                  std::span<float> mean) {
  constexpr double kUnit = 0x1p-14;
  Codes codes(gradients.size(), std::vector<int>(mean.size()));
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
    simulation::Random draws = round.draws(rank, index);
    for (std::size_t i = 0; i < segment.element_count; ++i) {
      const double cut = std::clamp(gradients[rank][i] / kUnit, -32768.0, 32767.0);
      codes[rank][i] = stochastic_round(cut, draws);
    }
  }
  add_mean(codes, 0, segment.element_count, kUnit, mean);
  return bits_of(round, codes, segment.element_count);
}

// Zhou et al. 2016, section 2.5: f(g) = 2 m (quantize_k(g/(2m) + 1/2 + N(k)) - 1/2), m = max|g|, N(k) uniform within
// half a level. The code is the odd number 2 l - (2^k - 1).
Bits Dorefa::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                 std::span<float> mean) {
  Codes codes(gradients.size(), std::vector<int>(mean.size()));
  const double most = largest_of_all(gradients);
  for (std::size_t rank = 0; rank < gradients.size() && most > 0; ++rank) {
    simulation::Random draws = round.draws(rank, index);
    for (std::size_t i = 0; i < segment.element_count; ++i) {
      const double place = (gradients[rank][i] / (2 * most) + 0.5) * most_;
      codes[rank][i] = 2 * std::clamp(stochastic_round(place, draws), 0, most_) - most_;
    }
  }
  add_mean(codes, 0, segment.element_count, most / most_, mean);
  Bits bits = bits_of(round, codes, segment.element_count);
  bits.sent += 32;
  return bits;
}

}  // namespace tg::plain

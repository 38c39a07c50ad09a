#include "tests/plain/sparse.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

namespace tg::plain {
namespace {

std::size_t kept(double density, std::size_t count) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(density * static_cast<double>(count))));
}

}  // namespace

// The upper half of a float's bits says which of 2^15 bins |value| is in; only one bin has to be sorted.
float kth_largest(std::span<const float> values, std::size_t k) {
  const auto bin_of = [](float value) { return std::bit_cast<std::uint32_t>(std::fabs(value)) >> 16; };
  std::vector<std::size_t> bins(1U << 15);
  for (const float value : values) ++bins[bin_of(value)];
  std::uint32_t bin = (1U << 15) - 1;
  for (; bins[bin] < k; --bin) k -= bins[bin];
  std::vector<float> inside;
  for (const float value : values)
    if (bin_of(value) == bin) inside.push_back(std::fabs(value));
  const auto kth = inside.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::ranges::nth_element(inside, kth, std::greater<>());
  return *kth;
}

// Aji and Heafield 2017, Algorithm 1: a = g + e, the smallest R % are dropped and kept as e. Without e: the hard
// threshold H_k of the gradient, as Garg and Khandekar 2009 take it of the parameters.
Bits Largest::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                  std::span<float> mean) {
  const std::size_t count = segment.element_count;
  const auto members = static_cast<double>(gradients.size());
  std::ranges::fill(mean, 0.0F);
  Bits bits{0, 32.0 * static_cast<double>(count)};
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
    const std::span<float> error = errors_.of(rank, index, count);
    for (std::size_t i = 0; i < count; ++i) error[i] = (feedback_ ? error[i] : 0.0F) + gradients[rank][i];
    const float threshold = kth_largest(error, kept(density_, count));
    std::vector<int> sent(count);
    double floats = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::fabs(error[i]) < threshold || error[i] == 0) continue;
      mean[i] += error[i] / static_cast<float>(members);
      error[i] = 0;
      sent[i] = 1;
      ++floats;
    }
    bits.sent += (entropy_bits(round, sent) + 32 * floats) / members;
  }
  return bits;
}

// Wang et al. 2018, section 3, Algorithm 1 for the entries as atoms: g_i / p_i with the probability p_i =
// min(1, |g_i| / t), t such that the p_i add up to the budget. What is less than t is sent as t sign(g).
Bits Atomo::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                std::span<float> mean) {
  const std::size_t count = segment.element_count;
  const auto members = static_cast<double>(gradients.size());
  const auto budget = static_cast<double>(kept(density_, count));
  std::ranges::fill(mean, 0.0F);
  Bits bits{32, 32.0 * static_cast<double>(count)};
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
    const std::span<const float> gradient = gradients[rank].first(count);
    double threshold = INFINITY;
    for (double last = 0; threshold != last;) {  // it only falls: what is above it stays there
      last = threshold;
      double below = 0, above = 0;
      for (const float g : gradient) std::fabs(g) < threshold ? below += std::fabs(g) : above += 1;
      if (budget > above) threshold = std::min(threshold, below / (budget - above));
    }
    simulation::Random draws = round.draws(rank, index);
    std::vector<int> codes(count);
    double exact = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double size = std::fabs(gradient[i]);
      if (size == 0) continue;
      const bool whole = size >= threshold;
      if (!whole && draws.unit() * threshold >= size) continue;
      codes[i] = whole ? 2 : std::signbit(gradient[i]) ? -1 : 1;
      exact += whole ? 1 : 0;
      mean[i] += static_cast<float>((whole ? gradient[i] : codes[i] * threshold) / members);
    }
    bits.sent += (entropy_bits(round, codes) + 32 * exact) / members;
  }
  return bits;
}

}  // namespace tg::plain

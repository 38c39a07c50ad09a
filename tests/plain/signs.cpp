#include "tests/plain/signs.h"

#include <algorithm>
#include <cmath>

#include "tests/plain/floats.h"

namespace tg::plain {

// Seide et al. 2014, section 3.1: q = Q(g_t + e_(t-1)), e_t = g_t + e_(t-1) - Q^-1(q); Q^-1 gives the mean of what had
// this sign in the column.
Bits OneBit::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                 std::span<float> mean) {
  const std::size_t columns = segment.shape.size() > 1 ? static_cast<std::size_t>(segment.shape.front()) : 1;
  const std::size_t length = segment.element_count / columns;
  const auto members = static_cast<double>(gradients.size());
  std::ranges::fill(mean, 0.0F);
  Bits bits{64.0 * static_cast<double>(columns), 32.0 * static_cast<double>(segment.element_count)};
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
    const std::span<float> error = errors_.of(rank, index, segment.element_count);
    std::vector<int> codes(segment.element_count);
    for (std::size_t begin = 0; begin < segment.element_count; begin += length) {
      double sums[2] = {}, counts[2] = {};
      for (std::size_t i = begin; i < begin + length; ++i) {
        error[i] += gradients[rank][i];
        codes[i] = error[i] < 0 ? 0 : 1;
        sums[codes[i]] += static_cast<double>(error[i]);
        ++counts[codes[i]];
      }
      const float values[2] = {static_cast<float>(sums[0] / std::max(counts[0], 1.0)),
                               static_cast<float>(sums[1] / std::max(counts[1], 1.0))};
      for (std::size_t i = begin; i < begin + length; ++i) {
        error[i] -= values[codes[i]];
        mean[i] += values[codes[i]] / static_cast<float>(members);
      }
    }
    bits.sent += entropy_bits(round, codes) / members;
  }
  return bits;
}

// Bernstein et al. 2018, Algorithm 3: w -= rate sign(sum of sign(g)).
Bits MajorityVote::one(const Round& round, std::size_t /*index*/, const engine::Segment& segment, Gradients gradients,
                       std::span<float> mean) {
  Codes codes(gradients.size(), std::vector<int>(mean.size()));
  for (std::size_t rank = 0; rank < gradients.size(); ++rank)
    for (std::size_t i = 0; i < segment.element_count; ++i) codes[rank][i] = std::signbit(gradients[rank][i]) ? -1 : 1;
  std::vector<int> votes = sum_of(codes);
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>((votes[i] > 0) - (votes[i] < 0));
  for (int& vote : votes) vote = (vote > 0) - (vote < 0);
  Bits bits = bits_of(round, codes, segment.element_count);
  bits.sum = entropy_bits(round, std::span<const int>(votes).first(segment.element_count));  // the winner is sent back
  return bits;
}

// Chen and Wang 2026 (arXiv 2604.25550): p = sign(g + sigma_t xi), xi normal. sigma_t falls to 0 in a straight line and
// begins at the root mean square of the member's segment, which is ours. The rate of the switch is the running mean of
// |p g| / |g|^2: the length of the signs' step along the gradient. Both as others sum the paper up; we have not read
// it.
Bits DitheredSign::mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
                        std::span<float> mean) {
  constexpr double kKept = 0.99;
  std::vector<float> floats(mean.size());
  const Bits as_floats = Floats(false).mean(round, segments, gradients, floats);
  if (round.step >= until_) {
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] = static_cast<float>(weight_ > 0 ? floats[i] * rate_ / weight_ : 0);
    return as_floats;
  }
  Bits bits;
  double square = 0, product = 0;  // the gradient's square; its product with the signs
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const std::size_t begin = segments[s].offset, count = segments[s].element_count;
    Codes codes(gradients.size(), std::vector<int>(count));
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      const std::span<const float> gradient = gradients[rank].subspan(begin, count);
      double squares = 0;
      for (const float g : gradient) squares += static_cast<double>(g) * g;
      const double left = 1 - static_cast<double>(round.step) / static_cast<double>(until_);
      const double sigma = left * std::sqrt(squares / static_cast<double>(count));
      simulation::Random draws = round.draws(rank, s);
      for (std::size_t i = 0; i < count; ++i) {
        const double normal = std::sqrt(-2 * std::log(1 - draws.unit())) * std::cos(2 * M_PI * draws.unit());
        codes[rank][i] = std::signbit(gradient[i] + sigma * normal) ? -1 : 1;
      }
    }
    const std::vector<int> sums = sum_of(codes);
    for (std::size_t i = 0; i < count; ++i) {
      mean[begin + i] = static_cast<float>(sums[i]) / static_cast<float>(gradients.size());
      square += static_cast<double>(floats[begin + i]) * floats[begin + i];
      product += static_cast<double>(mean[begin + i]) * floats[begin + i];
    }
    bits += bits_of(round, codes, count);
  }
  if (square > 0) {
    rate_ = kKept * rate_ + (1 - kKept) * std::fabs(product) / square;
    weight_ = kKept * weight_ + (1 - kKept);
  }
  return bits;
}

}  // namespace tg::plain

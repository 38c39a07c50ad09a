#include "tests/plain/ternary.h"

#include <algorithm>
#include <cmath>

namespace tg::plain {

kernels::Statistics statistics_of(const kernels::Kernels& kernels, std::span<const float> gradient) {
  constexpr std::size_t kSlice = 512U << 10;
  kernels::Statistics all;
  for (std::size_t at = 0; at < gradient.size(); at += kSlice)
    all.join(kernels.statistics(gradient.subspan(at, std::min(kSlice, gradient.size() - at))));
  return all;
}

// Wen et al. 2017, eq. (21): f(g) = g where |g| <= c sigma, else sign(g) c sigma; eq. (2): s = max|f(g)|.
kernels::Scale announce(const TernaryOptions& options, const kernels::Statistics& statistics, std::size_t elements) {
  const float bound = kernels::clip_bound(statistics, elements, options.clip_sigma);
  const bool repo = options.repo_recipe && std::isfinite(bound);
  return {bound, repo ? bound : std::min(statistics.max_abs, bound)};
}

// Wen et al. 2017, eq. (4): s = max of all members' s.
void share(const TernaryOptions& options, std::span<kernels::Scale> scales) {
  float most = 0;
  for (const kernels::Scale& scale : scales) most = std::max(most, scale.scaler);
  for (kernels::Scale& scale : scales) {
    if (options.shared) scale.scaler = most;
    if (options.repo_recipe) scale.clip = scale.scaler;
  }
}

// Wen et al. 2017, eq. (1), (3): sign(g) b, P(b = 1) = |f(g)| / s, of which 8-bit draws give 255/256.
void ternarize(const Round& round, const kernels::DrawKey& key, std::span<const float> gradient, std::size_t first,
               const kernels::Scale& scale, std::span<int> codes) {
  std::vector<std::uint64_t> nonzero(gradient.size() / 64), negative(gradient.size() / 64);
  round.kernels.ternarize(gradient, first, key, scale, {nonzero, negative});
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const int magnitude = static_cast<int>(nonzero[i / 64] >> (i % 64) & 1);
    codes[i] = (negative[i / 64] >> (i % 64) & 1) != 0 ? -magnitude : magnitude;
  }
}

// The mean is unbiased, eq. (10), with s' = 256/255 s.
void mean_of_codes(const TernaryOptions& options, const Codes& codes, std::span<const kernels::Scale> scales,
                   std::span<float> mean) {
  const auto worth = [](float scaler) { return static_cast<float>(static_cast<double>(scaler) * 256.0 / 255.0); };
  const auto members = static_cast<float>(codes.size());
  if (options.shared) {
    const std::vector<int> sums = sum_of(codes);
    const float unit = worth(scales.front().scaler) / members;
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = unit * static_cast<float>(sums[i]);
    return;
  }
  std::ranges::fill(mean, 0.0F);
  for (std::size_t rank = 0; rank < codes.size(); ++rank) {
    const float unit = worth(scales[rank].scaler);
    for (std::size_t i = 0; i < mean.size(); ++i)
      if (codes[rank][i] != 0) mean[i] = mean[i] + static_cast<float>(codes[rank][i]) * unit;
  }
  for (float& value : mean) value = 1.0F / members * value;
}

std::vector<kernels::Scale> TernGrad::scales_of(const Round& round, std::size_t elements, Gradients gradients) const {
  std::vector<kernels::Scale> scales;
  for (const std::span<const float> gradient : gradients)
    scales.push_back(announce(options_, statistics_of(round.kernels, gradient), elements));
  share(options_, scales);
  return scales;
}

Bits TernGrad::mean(const Round& round, const engine::SegmentTable& segments, Gradients gradients,
                    std::span<float> mean) {
  if (options_.global) global_ = scales_of(round, segments.parameter_count(), gradients);
  Bits bits = SegmentRule::mean(round, segments, gradients, mean);
  if (options_.global) bits.sent += 32;
  return bits;
}

Bits TernGrad::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                   std::span<float> mean) {
  const std::size_t bucket = options_.bucket > 0 ? options_.bucket : mean.size();
  Codes codes(gradients.size(), std::vector<int>(mean.size()));
  std::size_t buckets = 0;
  for (std::size_t at = 0; at < segment.element_count; at += bucket, ++buckets) {
    const std::size_t count = std::min(bucket, mean.size() - at);
    std::vector<std::span<const float>> parts;
    for (const std::span<const float> gradient : gradients) parts.push_back(gradient.subspan(at, count));
    const std::vector<kernels::Scale> scales =
        options_.global ? global_ : scales_of(round, std::min(count, segment.element_count - at), parts);
    Codes part(gradients.size(), std::vector<int>(count));
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      ternarize(round, round.key(rank, index), parts[rank], at, scales[rank], part[rank]);
      std::ranges::copy(part[rank], codes[rank].begin() + static_cast<std::ptrdiff_t>(at));
    }
    mean_of_codes(options_, part, scales, mean.subspan(at, count));
  }
  Bits bits = bits_of(round, codes, segment.element_count);
  if (!options_.global) bits.sent += 32.0 * static_cast<double>(buckets);
  if (!options_.shared) bits.sum = 32.0 * static_cast<double>(segment.element_count);
  return bits;
}

}  // namespace tg::plain

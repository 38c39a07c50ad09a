#include "tests/plain/differences.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/aligned_array.h"
#include "tests/plain/ternary.h"

namespace tg::plain {

// Mishchenko et al. 2019, Algorithm 1: c_r = Q_p(g_r - h_r), h_r += a c_r; the mean is h + (mean of c_r), h += a (mean
// of c_r). a is half of their alpha_p(d): 1/sqrt(d) for p = 2, 2/(1 + sqrt(d)) for the largest. Khirirat et al. 2018: a
// = 0.
Bits Diana::one(const Round& round, std::size_t index, const engine::Segment& segment, Gradients gradients,
                std::span<float> mean) {
  const double root = std::sqrt(static_cast<double>(segment.element_count));
  const auto rate = static_cast<float>(norm_ == Norm::kEuclidean ? 0.5 / root : 1 / (1 + root));
  Codes codes;
  std::vector<kernels::Scale> scales;
  for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
    AlignedArray<float> difference(mean.size());
    std::ranges::copy(gradients[rank], difference.begin());
    const std::span<float> learned = learns_ ? learned_.of(rank, index, mean.size()) : std::span<float>();
    for (std::size_t i = 0; i < learned.size(); ++i) difference[i] -= learned[i];
    double squares = 0;
    for (const float value : difference) squares += static_cast<double>(value) * value;
    scales.push_back(
        {INFINITY, static_cast<float>(norm_ == Norm::kEuclidean ? std::sqrt(squares) : largest(difference.span()))});
    codes.emplace_back(mean.size());
    ternarize(round, round.key(rank, index), difference.span(), 0, scales[rank], codes[rank]);
    const float step = rate * kernels::applied_scale(scales[rank].scaler);
    for (std::size_t i = 0; i < learned.size(); ++i) learned[i] += step * static_cast<float>(codes[rank][i]);
  }
  mean_of_codes({.shared = false}, codes, scales, mean);
  const std::span<float> all = learns_ ? mean_learned_.of(0, index, mean.size()) : std::span<float>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float sent = mean[i];
    mean[i] += all[i];
    all[i] += rate * sent;
  }
  Bits bits = bits_of(round, codes, segment.element_count);
  bits.sent += 32;
  bits.sum = 32.0 * static_cast<double>(segment.element_count);
  return bits;
}

}  // namespace tg::plain

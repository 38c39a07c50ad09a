#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "kernels/require.h"

namespace tg::kernels {

// Mask, signs and members - 1 level planes; each has one bit per element if every |sum| equals the member count.
std::size_t sums_bound(std::size_t elements, int members) {
  require_members(members);
  return elements / 8 * (static_cast<std::size_t>(members) + 1) + kPayloadSlack;
}

float clip_bound(const Statistics& statistics, std::size_t elements, float clip_sigma) {
  constexpr float kUnclipped = std::numeric_limits<float>::infinity();
  constexpr double kResolution = 0x1p-18;  // 64 float additions per lane and block, 2^-24 each
  if (clip_sigma == 0 || elements == 0) return kUnclipped;
  const double count = static_cast<double>(elements);
  const double mean = statistics.sum / count;
  const double mean_square = statistics.sum_squares / count;
  const double variance = mean_square - mean * mean;
  const bool measured = variance > kResolution * mean_square && variance <= std::numeric_limits<double>::max();
  return measured ? static_cast<float>(static_cast<double>(clip_sigma) * std::sqrt(variance)) : kUnclipped;
}

}  // namespace tg::kernels

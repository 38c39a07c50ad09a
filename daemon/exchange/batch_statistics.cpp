#include "daemon/exchange/batch_statistics.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/check.h"

namespace tg::daemon {

std::optional<std::size_t> BatchStatistics::first_not_finite(std::span<const float> measured) const {
  TG_CHECK(measured.size() == count(), measured.size(), count());
  for (std::size_t s = 0; s < table.size(); ++s) {
    const std::span<const float> values = measured.first(table[s].element_count);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return s;
    measured = measured.subspan(values.size());
  }
  return std::nullopt;
}

std::vector<float> BatchStatistics::mean(const Per<Rank, std::span<const float>>& measured) const {
  std::vector<float> mean(count());
  if (mean.empty()) return mean;
  TG_CHECK(shares.size() == measured.size(), shares.size(), measured.size());
  for (const Rank rank : measured.places())
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += shares[rank] * measured[rank][i];
  return mean;
}

}  // namespace tg::daemon

#include <algorithm>
#include <numeric>

#include "engine/dataset.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

constexpr std::uint64_t kMaxSplitSamples = std::uint64_t{1} << 40;  // a product with a weight fits 64 bits

}  // namespace

std::vector<Share> split(std::uint64_t total, std::span<const std::uint16_t> weights) {
  const std::size_t members = weights.size();
  TG_CHECK(members > 0 && total <= kMaxSplitSamples, members, total);
  TG_CHECK(std::all_of(weights.begin(), weights.end(), [](std::uint16_t weight) { return weight > 0; }));
  std::uint64_t rest = total, sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  // A member whose quota is below one gets one, the lightest first; the others split the rest.
  std::vector<std::size_t> by_weight(members);
  std::iota(by_weight.begin(), by_weight.end(), std::size_t{0});
  std::stable_sort(by_weight.begin(), by_weight.end(),
                   [&](std::size_t a, std::size_t b) { return weights[a] < weights[b]; });
  std::vector<std::uint64_t> counts(members, 0);
  std::size_t light = 0;
  for (; total >= members && rest * weights[by_weight[light]] < sum; ++light) {
    counts[by_weight[light]] = 1;
    rest -= 1;
    sum -= weights[by_weight[light]];
  }
  std::vector<std::size_t> others(by_weight.begin() + static_cast<std::ptrdiff_t>(light), by_weight.end());
  std::uint64_t left = rest;
  for (const std::size_t rank : others) left -= counts[rank] = rest * weights[rank] / sum;
  std::sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    const std::uint64_t of_a = rest * weights[a] % sum, of_b = rest * weights[b] % sum;
    return of_a != of_b ? of_a > of_b : a < b;
  });
  for (std::size_t i = 0; i < left; ++i) ++counts[others[i]];
  std::vector<Share> shares;
  std::uint64_t first = 0;
  for (const std::uint64_t count : counts) {
    TG_CHECK(count <= INT32_MAX, total, members);
    shares.push_back({first, static_cast<int>(count)});
    first += count;
  }
  return shares;
}

}  // namespace tg::engine

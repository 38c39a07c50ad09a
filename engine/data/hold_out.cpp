#include "engine/data/hold_out.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/data/draws.h"

namespace tg::engine {

std::vector<char> hold_out(std::span<const std::uint16_t> labels, std::size_t classes, double share,
                           std::uint64_t seed) {
  std::vector<std::vector<std::size_t>> samples(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) samples[labels[i]].push_back(i);
  std::vector<char> held(labels.size());
  for (std::size_t c = 0; c < classes; ++c) {
    std::vector<std::size_t>& of_class = samples[c];
    if (of_class.empty()) continue;
    Draws draws(seed, DrawDomain::kHoldOut, c);
    const auto wanted = static_cast<std::size_t>(std::floor(static_cast<double>(of_class.size()) * share + 0.5));
    const std::size_t count = std::min(wanted, of_class.size() - 1);
    for (std::size_t i = 0; i < count; ++i) {
      const auto left = static_cast<std::uint32_t>(of_class.size() - i);
      std::swap(of_class[i], of_class[i + draws.below(left)]);
      held[of_class[i]] = 1;
    }
  }
  return held;
}

}  // namespace tg::engine

// The median of a list of values. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tg {

// An even number of values gives the mean of the middle two, an empty list 0.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tg

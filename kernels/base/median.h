// The median of some values. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tg {

// Of an even number the mean of the two in the middle; 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace tg

#include "tests/bench/row.h"

#include <cstdio>

namespace tg::kernels {

void print(const Row& row) {
  std::printf("%-44s %8.2f %-12s %7.3f", row.name.c_str(), row.value, row.unit, row.ratio);
  if (row.target > 0) {
    const bool met = row.most ? row.ratio <= row.target : row.ratio >= row.target;
    std::printf("  target %s %.2f  %s", row.most ? "<=" : ">=", row.target, met ? "met" : "NOT met");
  }
  std::printf("\n");
}

}  // namespace tg::kernels

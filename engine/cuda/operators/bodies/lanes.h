// Neighbouring threads of a block, a power of two of them, that compute one sum together. Each adds its part, in order,
// and then halves fold onto each other: lane i adds lane i + lanes/2, then i + lanes/4, ... The tree depends on `count`
// alone.
#pragma once

#include "engine/cuda/operators/bodies/grid.h"

namespace tg::engine::cuda::bodies {

struct Lanes {
  int count = 1, folds = 0;  // count = 2^folds

  // As few lanes as leave each about `each` items, but at least 2^least_folds.
  static Lanes of(std::uint64_t items, std::uint64_t each, int least_folds) {
    Lanes lanes{1 << least_folds, least_folds};
    while (lanes.count < kThreads && static_cast<std::uint64_t>(lanes.count) * each < items) {
      lanes.count *= 2;
      ++lanes.folds;
    }
    return lanes;
  }

  // The number of blocks for `sums` sums.
  std::uint64_t blocks(std::uint64_t sums) const { return blocks_of(sums << folds); }

  TG_HOST_DEVICE std::uint64_t sum_of(std::uint64_t block, int thread) const {
    return (block * kThreads + static_cast<std::uint64_t>(thread)) >> folds;
  }
  TG_HOST_DEVICE int lane(int thread) const { return thread & (count - 1); }
  TG_HOST_DEVICE int leader(int thread) const { return thread & ~(count - 1); }
  // number: 0 is the first fold. take_in(to, from) adds from's part to to's.
  template <class Cell, class TakeIn>
  TG_HOST_DEVICE void fold(int number, int thread, Cell* cells, const TakeIn& take_in) const {
    const int distance = count >> (number + 1);
    if (lane(thread) < distance) take_in(cells[thread], cells[thread + distance]);
  }
};

}  // namespace tg::engine::cuda::bodies

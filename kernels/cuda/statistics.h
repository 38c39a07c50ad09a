// Statistics of many slices, in two launches, in the order of additions that types.h fixes.
//   1. measure_lane: a warp for each fold block of each slice; lane l is lane l of the contract. It writes the two
//      float sums, 64 floats a fold block (3 % of what is read), and the block's largest |g|.
//   2. A block for each slice adds up its fold blocks' sums, a tile of them at a time: stage brings the tile into
//      shared memory, add_tile adds one float of every fold block in it, in order, to the double of one of 64 lane
//      totals, while the next tile is on its way; finish adds the doubles in lane order.
// An addition in double takes about 8 cycles and waits for the one before it: 256 fold blocks (512 Ki elements) take
// 1.2 us.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/vector.h"
#include "kernels/types.h"

namespace tg::kernels::cuda {

inline constexpr unsigned kTotals = 2 * kLanes;  // floats of a fold block: sums of all lanes, then of their squares
static_assert(kLanes == kWarp);

struct MeasuredSlice {
  const float* gradient;
  std::size_t elements;    // a multiple of kBlock
  std::size_t first_fold;  // fold blocks of the preceding slices
};

TG_HOST_DEVICE inline std::size_t folds_of(std::size_t elements) { return (elements + kFold - 1) / kFold; }

// The first launch's number of blocks for a slice, and the fold block a thread works on, if it exists.
inline unsigned measure_blocks(std::size_t folds) { return blocks_for(folds * kWarp); }
TG_HOST_DEVICE inline std::size_t fold_of(unsigned block, unsigned thread) {
  return thread_number(block, thread) / kWarp;
}

// The first launch's results, which the second one reads.
struct Partials {
  float* lanes;            // kTotals for each fold block
  std::uint32_t* largest;  // one for each fold block: the bits of its largest |g|
};

struct LaneSums {
  float sum, squares;
  std::uint32_t largest;
};

TG_HOST_DEVICE inline std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a < b ? b : a; }

// Sums one lane of fold block `fold` of the slice; the block must exist.
TG_HOST_DEVICE inline LaneSums measure_lane(const MeasuredSlice& slice, std::size_t fold, unsigned lane) {
  constexpr std::size_t kRows = kBlock / kLanes;  // rows read at a time
  const std::size_t rest = slice.elements - fold * kFold;
  const std::size_t blocks = (rest < kFold ? rest : kFold) / kBlock;
  const float* from = slice.gradient + fold * kFold + lane;
  LaneSums lane_sums{0, 0, 0};
  for (std::size_t block = 0; block < blocks; ++block, from += kBlock) {
    float g[kRows];
    TG_UNROLL
    for (std::size_t row = 0; row < kRows; ++row) g[row] = from[row * kLanes];
    TG_UNROLL
    for (std::size_t row = 0; row < kRows; ++row) {
      lane_sums.sum += g[row];
      lane_sums.squares += g[row] * g[row];
      lane_sums.largest = larger(lane_sums.largest, bits_of(g[row]) & 0x7FFFFFFFU);
    }
  }
  return lane_sums;
}

TG_HOST_DEVICE inline void write_lane(const LaneSums& lane_sums, std::size_t fold, unsigned lane, float* lanes) {
  lanes[fold * kTotals + lane] = lane_sums.sum;
  lanes[fold * kTotals + kLanes + lane] = lane_sums.squares;
}

// The second launch's tiles: the fold blocks of a tile, and each thread's part of it.
inline constexpr std::size_t kTileFolds = 32;
inline constexpr std::size_t kTileTotals = kTileFolds * kTotals;
inline constexpr std::size_t kStagedVectors = kTileTotals / kVector / kThreads;  // vectors that each thread moves
static_assert(kStagedVectors * kVector * kThreads == kTileTotals && kTotals % kVector == 0);

// The values that a thread is moving to shared memory.
struct Staged {
  Floats4 vectors[kStagedVectors];
};

// lanes and folds are the slice's; past its end the values are zero.
TG_HOST_DEVICE inline Staged fetch_tile(const float* lanes, std::size_t folds, std::size_t tile, unsigned thread) {
  Staged staged;
  TG_UNROLL
  for (std::size_t v = 0; v < kStagedVectors; ++v) {
    const std::size_t at = tile * kTileTotals + (v * kThreads + thread) * kVector;
    staged.vectors[v] = at < folds * kTotals ? load(lanes + at) : Floats4{{0, 0, 0, 0}};
  }
  return staged;
}

// Stores doubles, so that the threads that add have nothing else to do.
TG_HOST_DEVICE inline void stage_tile(const Staged& staged, unsigned thread, double* tile) {
  TG_UNROLL
  for (std::size_t v = 0; v < kStagedVectors; ++v) {
    TG_UNROLL
    for (std::size_t e = 0; e < kVector; ++e)
      tile[(v * kThreads + thread) * kVector + e] = static_cast<double>(staged.vectors[v].at[e]);
  }
}

// Zeros past the slice's end change nothing: a total that starts at +0 is never -0.
TG_HOST_DEVICE inline double add_tile(double total, const double* tile, unsigned t) {
  TG_UNROLL
  for (std::size_t fold = 0; fold < kTileFolds; ++fold) total += tile[fold * kTotals + t];
  return total;
}

// The largest |g| of every kTotals-th fold block from t on.
TG_HOST_DEVICE inline std::uint32_t largest_of(const std::uint32_t* largest, std::size_t folds, unsigned t) {
  std::uint32_t bits = 0;
  for (std::size_t fold = t; fold < folds; fold += kTotals) bits = larger(bits, largest[fold]);
  return bits;
}

// totals and largest are those of the slice's kTotals threads.
TG_HOST_DEVICE inline Statistics finish(const double* totals, const std::uint32_t* largest) {
  Statistics result;
  std::uint32_t bits = 0;
  TG_UNROLL
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    result.sum += totals[lane];
    result.sum_squares += totals[kLanes + lane];
    bits = larger(bits, larger(largest[lane], largest[kLanes + lane]));
  }
  result.max_abs = float_of(bits);
  result.finite = bits < 0x7F800000U;  // the bits of +inf; NaNs lie above
  return result;
}

}  // namespace tg::kernels::cuda

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.cuh"

namespace tg::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) measure(const MeasuredSlice* slices, Partials partials) {
  const MeasuredSlice slice = slices[blockIdx.y];
  const std::size_t fold = fold_of(blockIdx.x, threadIdx.x);
  if (fold >= folds_of(slice.elements)) return;  // the whole warp
  const unsigned lane = threadIdx.x % kWarp;
  const LaneSums lane_sums = measure_lane(slice, fold, lane);
  write_lane(lane_sums, slice.first_fold + fold, lane, partials.lanes);
  std::uint32_t bits = lane_sums.largest;
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    bits = larger(bits, __shfl_xor_sync(kWholeWarp, bits, distance));
  if (lane == 0) partials.largest[slice.first_fold + fold] = bits;
}

__global__ void __launch_bounds__(kThreads)
    combine(const MeasuredSlice* slices, const Partials partials, Statistics* results) {
  __shared__ double tiles[2][kTileTotals];
  __shared__ double totals[kTotals];
  __shared__ std::uint32_t largest[kTotals];
  const MeasuredSlice slice = slices[blockIdx.x];
  const std::size_t folds = folds_of(slice.elements);
  const float* const lanes = partials.lanes + slice.first_fold * kTotals;
  const unsigned t = threadIdx.x;
  double total = 0;
  stage_tile(fetch_tile(lanes, folds, 0, t), t, tiles[0]);
  __syncthreads();
  for (std::size_t tile = 0; tile * kTileFolds < folds; ++tile) {
    const Staged next = fetch_tile(lanes, folds, tile + 1, t);
    if (t < kTotals) total = add_tile(total, tiles[tile % 2], t);
    stage_tile(next, t, tiles[(tile + 1) % 2]);
    __syncthreads();
  }
  if (t < kTotals)
    totals[t] = total;
  else if (t < 2 * kTotals)
    largest[t - kTotals] = largest_of(partials.largest + slice.first_fold, folds, t - kTotals);
  __syncthreads();
  if (t == 0) results[blockIdx.x] = finish(totals, largest);
}

}  // namespace

void statistics(cudaStream_t stream, const MeasuredSlice* slices, std::size_t slice_count, std::size_t most_folds,
                const Partials& partials, Statistics* results) {
  const dim3 grid(measure_blocks(most_folds), static_cast<unsigned>(slice_count));
  measure<<<grid, kThreads, 0, stream>>>(slices, partials);
  require_launched("statistics, measure");
  combine<<<grid.y, kThreads, 0, stream>>>(slices, partials, results);
  require_launched("statistics, combine");
}

}  // namespace tg::kernels::cuda

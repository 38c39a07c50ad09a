#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.cuh"

namespace tg::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads) ternarize_warps(const TernarizeArguments a) {
  const std::size_t warp = thread_number() / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  const Floats4 drawn = draw_dithers(a, warp, lane);
  for (unsigned j = 0; j < kGroupsPerWarp; ++j) {
    const std::size_t group = group_of(warp, j);
    if (group >= a.groups) return;  // the whole warp
    float dithers[kDraw];
    TG_UNROLL
    for (unsigned e = 0; e < kDraw; ++e) dithers[e] = __shfl_sync(kWholeWarp, drawn.at[e % 4], dither_lane(j, e));
    ternarize_sixteen(a, group, lane, dithers);
  }
}

}  // namespace

void ternarize(cudaStream_t stream, const TernarizeArguments& arguments) {
  ternarize_warps<<<ternarize_blocks(arguments.groups), kThreads, 0, stream>>>(arguments);
  require_launched("ternarize");
}

}  // namespace tg::kernels::cuda

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.cuh"

namespace tg::kernels::cuda {
namespace {

__device__ std::uint64_t warp_sum(std::uint64_t value) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kWholeWarp, static_cast<unsigned long long>(value), distance);
  return value;
}

__global__ void __launch_bounds__(kThreads) digest_tiles(const DigestArguments a, std::uint64_t* results) {
  constexpr unsigned kWarps = kThreads / kWarp;
  __shared__ std::uint64_t sums[kWarps];
  const std::uint64_t sum = warp_sum(digest_thread(a, blockIdx.x, gridDim.x, threadIdx.x));
  if (threadIdx.x % kWarp == 0) sums[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  const std::uint64_t total = warp_sum(threadIdx.x < kWarps ? sums[threadIdx.x] : 0);
  if (threadIdx.x == 0) results[blockIdx.x] = total;
}

}  // namespace

void digest(cudaStream_t stream, const DigestArguments& arguments, std::uint64_t* results) {
  digest_tiles<<<digest_blocks(arguments.elements), kThreads, 0, stream>>>(arguments, results);
  require_launched("digest");
}

}  // namespace tg::kernels::cuda

// What the kernels' files share: the thread's number, and the check after a launch.
#pragma once

#include "kernels/cuda/check.h"
#include "kernels/cuda/grid.h"

namespace tg::kernels::cuda {

__device__ inline std::size_t thread_number() { return thread_number(blockIdx.x, threadIdx.x); }

inline constexpr unsigned kWholeWarp = 0xFFFFFFFF;

inline void require_launched(const char* kernel) { require_success(cudaGetLastError(), kernel); }

}  // namespace tg::kernels::cuda

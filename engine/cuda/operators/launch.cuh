// The one way to launch a kernel of this folder: as many blocks of kThreads as the body asks for (bodies/grid.h).
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/operators/bodies/grid.h"
#include "kernels/cuda/check.h"

namespace tg::engine::cuda {

template <class Body>
__global__ void __launch_bounds__(kThreads) run_threads(const Body body, const std::uint64_t threads) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (thread < threads) body(thread);
}

// Four blocks of a multiprocessor, 64 registers a thread: left alone, ptxas takes fewer for sm_120, and spills.
template <class Body>
__global__ void __launch_bounds__(kThreads, 4) run_steps(const Body body, const int steps) {
  __shared__ typename Body::Cell cells[kThreads];
  for (int step = 0; step < steps; ++step) {
    body.step(step, blockIdx.x, static_cast<int>(threadIdx.x), cells);
    __syncthreads();
  }
}

template <class Body>
void launch(const Body& body, cudaStream_t stream) {
  const std::uint64_t threads = body.threads();
  if (threads == 0) return;
  const void* arguments[] = {&body, &threads};
  TG_CUDA(cudaLaunchKernel(run_threads<Body>, dim3(static_cast<unsigned>(blocks_of(threads))), dim3(kThreads),
                           const_cast<void**>(arguments), 0, stream));
}

template <class Body>
void launch_steps(const Body& body, cudaStream_t stream) {
  const int steps = body.steps();
  if (body.blocks() == 0) return;
  const void* arguments[] = {&body, &steps};
  TG_CUDA(cudaLaunchKernel(run_steps<Body>, dim3(static_cast<unsigned>(body.blocks())), dim3(kThreads),
                           const_cast<void**>(arguments), 0, stream));
}

}  // namespace tg::engine::cuda

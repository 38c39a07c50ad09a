#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.cuh"

namespace tg::kernels::cuda {
namespace {

__global__ void __launch_bounds__(kThreads)
    add_scaled_range(const float* parameters, float factor, float* gradient, std::size_t elements) {
  add_scaled_four(parameters, factor, gradient, elements, thread_number());
}

__global__ void __launch_bounds__(kThreads)
    average_range(const float* parameters, float rate, float* average, std::size_t elements) {
  average_four(parameters, rate, average, elements, thread_number());
}

}  // namespace

void add_scaled(cudaStream_t stream, const float* parameters, float factor, float* gradient, std::size_t elements) {
  add_scaled_range<<<blocks_for(elements / kVector), kThreads, 0, stream>>>(parameters, factor, gradient, elements);
  require_launched("add_scaled");
}

void average(cudaStream_t stream, const float* parameters, float rate, float* average, std::size_t elements) {
  average_range<<<blocks_for(elements / kVector), kThreads, 0, stream>>>(parameters, rate, average, elements);
  require_launched("average");
}

}  // namespace tg::kernels::cuda

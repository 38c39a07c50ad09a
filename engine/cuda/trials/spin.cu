#include "engine/cuda/trials/spin.h"

#include "kernels/cuda/check.h"

namespace tg::engine::cuda {
namespace {

__global__ void spin_kernel(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

}  // namespace

void spin(long long cycles, cudaStream_t stream) {
  spin_kernel<<<1, 1, 0, stream>>>(cycles);
  TG_CUDA(cudaGetLastError());
}

}  // namespace tg::engine::cuda

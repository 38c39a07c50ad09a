#include "engine/cuda/operators/layout.h"

#include "engine/cuda/operators/bodies/elementwise.h"
#include "engine/cuda/operators/bodies/transpose.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

void transpose(const Matrices& of, const float* from, float* to, cudaStream_t stream) {
  launch_steps(bodies::Transpose<float, float>(of, from, to), stream);
}

void transpose(const Matrices& of, const float* from, Bf16* to, cudaStream_t stream) {
  launch_steps(bodies::Transpose<float, Bf16>(of, from, to), stream);
}

void transpose(const Matrices& of, const Bf16* from, float* to, cudaStream_t stream) {
  launch_steps(bodies::Transpose<Bf16, float>(of, from, to), stream);
}

void round_to_bf16(std::size_t count, const float* from, Bf16* to, cudaStream_t stream) {
  const bodies::RoundToBf16 operation{from, to};
  operation.allows_wide() ? launch(bodies::Each<bodies::kWide, bodies::RoundToBf16>{operation, count}, stream)
                          : launch(bodies::Each<1, bodies::RoundToBf16>{operation, count}, stream);
}

}  // namespace tg::engine::cuda

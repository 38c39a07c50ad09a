// Converts values, which are float32 and NCHW between the stages, to the types and orders that a library's faster
// arithmetic takes. Plain asynchronous launches on a device as in elementwise.h; from and to are different memory.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda {

// Transposes each matrix. Images of n samples, c channels and p pixels are n matrices of c x p; in NHWC they are n
// matrices of p x c.
void transpose(const Matrices& of, const float* from, float* to, cudaStream_t stream);
void transpose(const Matrices& of, const float* from, Bf16* to, cudaStream_t stream);
void transpose(const Matrices& of, const Bf16* from, float* to, cudaStream_t stream);

// Rounds to the nearest, ties to even.
void round_to_bf16(std::size_t count, const float* from, Bf16* to, cudaStream_t stream);

}  // namespace tg::engine::cuda

// Other types and orders of values that are float32 and NCHW between the stages: what a library's faster arithmetic
// takes. On a device, plain asynchronous launches as in elementwise.h; from and to are different memory.
#pragma once

#include <cuda_runtime_api.h>

#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda {

// Each matrix transposed, in the same order. Images of n samples, c channels and p pixels are n matrices of c x p; in
// NHWC they are n of p x c.
void transpose(const Matrices& of, const float* from, float* to, cudaStream_t stream);
void transpose(const Matrices& of, const float* from, Bf16* to, cudaStream_t stream);
void transpose(const Matrices& of, const Bf16* from, float* to, cudaStream_t stream);

// To the nearest, to the even one of two that are as near.
void round_to_bf16(std::size_t count, const float* from, Bf16* to, cudaStream_t stream);

}  // namespace tg::engine::cuda

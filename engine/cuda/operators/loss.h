// Softmax cross-entropy on a device, with the formulas of engine/cpu/loss.h in double; the rows' losses are added in a
// fixed tree. Asynchronous launches, as in elementwise.h; every array is device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda {

// probabilities: rows * classes of them, or null. scratch: loss_scratch_bytes(shape), 16-byte aligned. result: one.
std::size_t loss_scratch_bytes(const LossShape& shape);
void cross_entropy(const LossShape& shape, const float* logits, const std::int32_t* labels, double* probabilities,
                   void* scratch, LossResult* result, cudaStream_t stream);
// gradient = *factor * weight * the class's * (probabilities - target).
void cross_entropy_gradient(const LossShape& shape, const double* probabilities, const std::int32_t* labels,
                            const float* factor, double weight, float* gradient, cudaStream_t stream);

}  // namespace tg::engine::cuda

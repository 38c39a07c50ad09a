// Operators that look at a neighbourhood in an image, NCHW on a device: plain asynchronous launches, as in
// elementwise.h. Every output, forward and backward, is the work of one thread in a fixed order: nothing is added by
// atomics, so results repeat bit for bit. Formulas are those of engine/graph/graph.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda {

// chosen: one byte per output, the place in the window of the first of the largest (the stage's maker checks that
// kernel * kernel <= 255); null if no backward follows.
void max_pooling(const PoolingShape& shape, const float* x, float* y, std::uint8_t* chosen, cudaStream_t stream);
// y: not null if the relu before it left its mask to this stage (plan.h): dy counts where y > 0.
void max_pooling_gradient(const PoolingShape& shape, const std::uint8_t* chosen, const float* dy, const float* y,
                          float* dx, cudaStream_t stream);

// Computes means over spans of rows and columns.
void average(const AverageShape& shape, const float* x, float* y, cudaStream_t stream);
void average_gradient(const AverageShape& shape, const float* dy, float* dx, cudaStream_t stream);

void normalization(const NormalizationShape& shape, const float* x, float* y, cudaStream_t stream);
void normalization_gradient(const NormalizationShape& shape, const float* x, const float* dy, float* dx,
                            cudaStream_t stream);

// Rows of features; y may be x. The mask is graph/dropout.h's, bit for bit. first_position: device memory, one number,
// so that a captured launch takes another one in each step.
void dropout(const DropoutShape& shape, const std::uint64_t* first_position, const float* x, float* y,
             cudaStream_t stream);

// Copies images and adds zeros around them; the inverse drops the padding.
void pad(int planes, const Sides& inner, const Padding& padding, const float* x, float* padded, cudaStream_t stream);
void unpad(int planes, const Sides& inner, const Padding& padding, const float* padded, float* x, cudaStream_t stream);

}  // namespace tg::engine::cuda

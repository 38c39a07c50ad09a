// Elementwise work on a device, and sums by channel: plain launches on the given stream, asynchronous, in the order of
// the stream. Pointers are device memory, counts are floats; x and y may be one array unless said otherwise.
// A failed launch throws std::runtime_error naming the call. Any thread, one stream at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "engine/cuda/operators/shapes.h"

namespace tg::engine::cuda {

// y = x + bias[channel], then max(., 0) with relu. bias may be null: 0.
void add_bias(const Planes& of, const float* x, const float* bias, bool relu, float* y, cudaStream_t stream);
// gradient[channel] = sum of dy over samples and pixels, in an order that the shape alone decides. scratch:
// bias_scratch_floats(of) floats.
std::size_t bias_scratch_floats(const Planes& of);
void bias_gradient(const Planes& of, const float* dy, float* scratch, float* gradient, cudaStream_t stream);

void relu(std::size_t count, const float* x, float* y, cudaStream_t stream);
// dx = y > 0 ? dy : 0.
void relu_gradient(std::size_t count, const float* y, const float* dy, float* dx, cudaStream_t stream);
// A relu that keeps its signs: relu_signs writes y and 1 or 0, one byte a value.
void relu_signs(std::size_t count, const float* x, float* y, std::uint8_t* signs, cudaStream_t stream);
void relu_gradient_signs(std::size_t count, const std::uint8_t* signs, const float* dy, float* dx, cudaStream_t stream);
// y = a + b, then max(., 0) with relu.
void add(std::size_t count, const float* a, const float* b, bool relu, float* y, cudaStream_t stream);
// to += from; they do not overlap.
void accumulate(std::size_t count, const float* from, float* to, cudaStream_t stream);

// Concat: channels [first, first + part.channels) of `whole_channels`, copied from a part or back into it. accumulates:
// part += instead of part =.
void join_channels(const Planes& part, std::size_t first, std::size_t whole_channels, const float* from, float* whole,
                   cudaStream_t stream);
void split_channels(const Planes& part, std::size_t first, std::size_t whole_channels, const float* whole,
                    bool accumulates, float* to, cudaStream_t stream);

}  // namespace tg::engine::cuda

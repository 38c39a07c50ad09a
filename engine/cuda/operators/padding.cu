#include "engine/cuda/operators/bodies/padding.h"

#include "engine/cuda/operators/images.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

void pad(int planes, const Sides& inner, const Padding& padding, const float* x, float* padded, cudaStream_t stream) {
  launch(bodies::Pad(planes, inner, padding, x, padded), stream);
}

void unpad(int planes, const Sides& inner, const Padding& padding, const float* padded, float* x, cudaStream_t stream) {
  launch(bodies::Unpad(planes, inner, padding, padded, x), stream);
}

}  // namespace tg::engine::cuda

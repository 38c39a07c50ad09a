#include "engine/cuda/operators/bodies/average.h"
#include "engine/cuda/operators/bodies/max_pooling.h"
#include "engine/cuda/operators/images.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

void max_pooling(const PoolingShape& shape, const float* x, float* y, std::uint8_t* chosen, cudaStream_t stream) {
  launch(bodies::MaxPooling(shape, x, y, chosen), stream);
}

void max_pooling_gradient(const PoolingShape& shape, const std::uint8_t* chosen, const float* dy, const float* y,
                          float* dx, cudaStream_t stream) {
  launch(bodies::MaxPoolingGradient(shape, chosen, dy, y, dx), stream);
}

void average(const AverageShape& shape, const float* x, float* y, cudaStream_t stream) {
  launch(bodies::Average(shape, x, y), stream);
}

void average_gradient(const AverageShape& shape, const float* dy, float* dx, cudaStream_t stream) {
  launch(bodies::AverageGradient(shape, dy, dx), stream);
}

}  // namespace tg::engine::cuda

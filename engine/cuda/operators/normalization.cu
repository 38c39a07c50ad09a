#include "engine/cuda/operators/bodies/normalization.h"

#include "engine/cuda/operators/images.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

// AlexNet has radius 2, CifarNet 4.
void normalization(const NormalizationShape& shape, const float* x, float* y, cudaStream_t stream) {
  switch (shape.layer.radius) {
    case 2:
      return launch(bodies::Normalization<2>(shape, x, y), stream);
    case 4:
      return launch(bodies::Normalization<4>(shape, x, y), stream);
    default:
      return launch(bodies::AnyNormalizationForward(shape, x, y), stream);
  }
}

void normalization_gradient(const NormalizationShape& shape, const float* x, const float* dy, float* dx,
                            cudaStream_t stream) {
  switch (shape.layer.radius) {
    case 2:
      return launch(bodies::NormalizationGradient<2>(shape, x, dy, dx), stream);
    case 4:
      return launch(bodies::NormalizationGradient<4>(shape, x, dy, dx), stream);
    default:
      return launch(bodies::AnyNormalizationGradient(shape, x, dy, dx), stream);
  }
}

}  // namespace tg::engine::cuda

#include "engine/cuda/operators/bodies/dropout.h"

#include "engine/cuda/operators/images.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

void dropout(const DropoutShape& shape, const std::uint64_t* first_position, const float* x, float* y,
             cudaStream_t stream) {
  const bodies::Dropout<bodies::kWide> wide(shape, first_position, x, y);
  wide.allows_wide() ? launch(wide, stream) : launch(bodies::Dropout<1>(shape, first_position, x, y), stream);
}

}  // namespace tg::engine::cuda

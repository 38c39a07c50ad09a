#include "engine/cuda/operators/loss.h"

#include "engine/cuda/operators/bodies/loss.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

std::size_t loss_scratch_bytes(const LossShape& shape) {
  return static_cast<std::size_t>(shape.counted) * sizeof(bodies::RowLoss);
}

void cross_entropy(const LossShape& shape, const float* logits, const std::int32_t* labels, double* probabilities,
                   void* scratch, LossResult* result, cudaStream_t stream) {
  auto* const rows = static_cast<bodies::RowLoss*>(scratch);
  launch_steps(bodies::RowLosses(shape, logits, labels, probabilities, rows), stream);
  launch_steps(bodies::SumRows(shape, rows, result), stream);
}

void cross_entropy_gradient(const LossShape& shape, const double* probabilities, const std::int32_t* labels,
                            const float* factor, double weight, float* gradient, cudaStream_t stream) {
  launch(bodies::LossGradient(shape, probabilities, labels, factor, weight, gradient), stream);
}

}  // namespace tg::engine::cuda

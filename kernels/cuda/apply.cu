#include "kernels/cuda/functions.h"
#include "kernels/cuda/launch.cuh"

namespace tg::kernels::cuda {
namespace {

template <OptimizerKind kKind, class Source>
__global__ void __launch_bounds__(kThreads)
    apply_range(const Update u, const Source source, std::size_t elements, const ConstStateAt from, const StateAt to) {
  apply_four<kKind>(u, source, elements, from, to, thread_number());
}

template <class Source>
void apply(cudaStream_t stream, const Update& u, const Source& source, std::size_t elements, const ConstStateAt& from,
           const StateAt& to) {
  const unsigned blocks = blocks_for(elements / kVector);
  switch (u.kind) {
    case OptimizerKind::kSgd:
      apply_range<OptimizerKind::kSgd><<<blocks, kThreads, 0, stream>>>(u, source, elements, from, to);
      break;
    case OptimizerKind::kMomentum:
      apply_range<OptimizerKind::kMomentum><<<blocks, kThreads, 0, stream>>>(u, source, elements, from, to);
      break;
    case OptimizerKind::kAdam:
      apply_range<OptimizerKind::kAdam><<<blocks, kThreads, 0, stream>>>(u, source, elements, from, to);
      break;
    case OptimizerKind::kAdamW:
      apply_range<OptimizerKind::kAdamW><<<blocks, kThreads, 0, stream>>>(u, source, elements, from, to);
      break;
  }
  require_launched("apply");
}

}  // namespace

void apply_sums(cudaStream_t stream, const Update& update, const SumsSource& sums, std::size_t elements,
                const ConstStateAt& from, const StateAt& to) {
  apply(stream, update, sums, elements, from, to);
}

void apply_floats(cudaStream_t stream, const Update& update, const FloatsSource& sums, std::size_t elements,
                  const ConstStateAt& from, const StateAt& to) {
  apply(stream, update, sums, elements, from, to);
}

void apply_planes(cudaStream_t stream, const Update& update, const PlanesSource& planes, std::size_t elements,
                  const ConstStateAt& from, const StateAt& to) {
  apply(stream, update, planes, elements, from, to);
}

}  // namespace tg::kernels::cuda

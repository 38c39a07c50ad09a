#include "engine/cuda/operators/announce.h"

#include "engine/cuda/operators/bodies/announce.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {

void announce(const std::uint64_t* number, std::uint64_t* word, cudaStream_t stream) {
  launch(bodies::Announce{number, word}, stream);
}

}  // namespace tg::engine::cuda

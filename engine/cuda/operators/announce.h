// Tells the host that a stream has come to this point, in captured work or not.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tg::engine::cuda {

// Writes *word = *number once everything before it on the stream is done. number: device memory. word: page-locked
// host memory. Asynchronous.
void announce(const std::uint64_t* number, std::uint64_t* word, cudaStream_t stream);

}  // namespace tg::engine::cuda

// A word for the host from the middle of what is queued on a stream, captured or not.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tg::engine::cuda {

// *word = *number, once everything before it on the stream is done. number: device memory. word: page-locked host
// memory. Asynchronous.
void announce(const std::uint64_t* number, std::uint64_t* word, cudaStream_t stream);

}  // namespace tg::engine::cuda

// A kernel that keeps a stream busy, so that work queued after it can be timed without the host.
#pragma once

#include <cuda_runtime_api.h>

namespace tg::engine::cuda {

// Spins for about that many cycles of the device's clock. Asynchronous; throws std::runtime_error naming the call.
void spin(long long cycles, cudaStream_t stream);

}  // namespace tg::engine::cuda

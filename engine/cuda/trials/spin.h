// A kernel that keeps a stream busy, so that what is queued behind it can be timed without the host.
#pragma once

#include <cuda_runtime_api.h>

namespace tg::engine::cuda {

// For about so many cycles of the device's clock. Asynchronous; throws std::runtime_error naming the call.
void spin(long long cycles, cudaStream_t stream);

}  // namespace tg::engine::cuda

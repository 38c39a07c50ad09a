// A device that is not there: what the CUDA engine calls of the runtime, cuDNN and cuBLASLt, on the host. It is linked
// in the libraries' place, against their own headers, so that the engine's source runs as it is.
//
// Work that is queued on a stream waits until the host waits for an event or a stream: a wait that is missing shows as
// a wrong number. What is queued while a stream is captured runs only when its graph is launched, with the addresses
// of then. One thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tg::engine::cuda::stand_in {

using Work = std::function<void()>;
void enqueue(cudaStream_t stream, Work work);

// How often each was done since the start.
struct Counts {
  std::size_t launches = 0;  // of work outside of graphs
  std::size_t captures = 0, graph_launches = 0;
};
Counts& counts();
// What cuDNN and cuBLASLt take: arithmetic that rounds factors only where this is not asked for. Of tf32 the layouts
// are stood in for, not the rounding; bf16 is 16 bits in memory.
bool& strict();
// Whether cuDNN has convolutions of NHWC at all.
bool& knows_nhwc();
// Bytes that cudaMemGetInfo calls free, and more than which cudaMalloc does not give; taken ones are not subtracted.
std::size_t& free_bytes();
// What goes wrong from now on. Algorithms are those of convolutions.
struct Faults {
  std::vector<int> failing, uncaptured;  // do not run; do not run while their stream is captured
  bool hung = false;                     // nothing that was queued is done
};
Faults& faults();
bool can_run(cudaStream_t stream, int algorithm);

}  // namespace tg::engine::cuda::stand_in

// A device that is not there: what the CUDA engine calls of the runtime, cuDNN and cuBLASLt, on the host. It is linked
// in the libraries' place, against their own headers, so that the engine's source runs as it is.
//
// Work that is queued on a stream waits until the host, or another stream on the host's behalf, waits for an event or
// the stream: a wait that is missing shows as a wrong number. Streams can be told to run at once instead, each kind for
// itself: what is early beside what is late is the other thing that a missing wait allows. What is queued while a
// stream is captured runs only when its graph is launched, with the addresses of then. One thread.
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
  std::size_t launches = 0;  // work outside of graphs
  std::size_t captures = 0, graph_launches = 0;
  std::size_t frees_under_work = 0;  // memory or a stream is freed: one for each stream that had something to do
};
Counts& counts();
// What cuDNN and cuBLASLt take: arithmetic that rounds factors only where this is not asked for. Of tf32 the layouts
// are stood in for, not the rounding; bf16 is 16 bits in memory.
bool& strict();
// Whether cuDNN has convolutions of NHWC at all.
bool& knows_nhwc();
// Bytes that cudaMemGetInfo calls free, and more than which cudaMalloc does not give; taken ones are not subtracted.
std::size_t& free_bytes();
// Bytes of the device that are taken now.
std::size_t taken_bytes();
// What goes wrong from now on. Algorithms are those of convolutions.
struct Faults {
  std::vector<int> failing, uncaptured;           // do not run; do not run while their stream is captured
  bool hung = false;                              // nothing that was queued is done
  bool computes_late = true, copies_late = true;  // for streams that are made: an engine's two
  bool no_page_locked_memory = false;
  float milliseconds = 1;  // that all takes that is timed
};
Faults& faults();
bool can_run(cudaStream_t stream, int algorithm);

}  // namespace tg::engine::cuda::stand_in

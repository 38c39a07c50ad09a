#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

#include "engine/cuda/trials/spin.h"
#include "tests/engine/cuda/stand_in/device.h"

using tg::engine::cuda::stand_in::counts;
using tg::engine::cuda::stand_in::enqueue;
using tg::engine::cuda::stand_in::faults;
using tg::engine::cuda::stand_in::free_bytes;
using tg::engine::cuda::stand_in::Work;

// A record in a graph counts when the graph is launched.
struct CUevent_st {
  std::size_t pending = 0;
};
struct Node {
  Work work;
  CUevent_st* event = nullptr;  // that it records
};
struct CUgraph_st {
  std::vector<Node> nodes;
};
struct CUgraphExec_st {
  std::vector<Node> nodes;
};
struct CUstream_st {
  std::unique_ptr<CUgraph_st> captured;  // while it is
};

namespace {

std::deque<Node>& queue() {
  static std::deque<Node> one;
  return one;
}

// What is only timed need not run: between spin and the question for the time.
bool& timing() {
  static bool one = false;
  return one;
}

void push(Node node) {
  if (node.event != nullptr) ++node.event->pending;
  queue().push_back(std::move(node));
}

void run_next() {
  const Node node = std::move(queue().front());
  queue().pop_front();
  if (node.work) node.work();
  if (node.event != nullptr) --node.event->pending;
}

cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  if (stream->captured != nullptr)
    stream->captured->nodes.push_back({{}, event});
  else
    push({{}, event});
  return cudaSuccess;
}

}  // namespace

namespace tg::engine::cuda {
namespace stand_in {

void enqueue(cudaStream_t stream, Work work) {
  if (stream->captured != nullptr) {
    stream->captured->nodes.push_back({std::move(work), nullptr});
    return;
  }
  ++counts().launches;
  if (!timing()) push({std::move(work), nullptr});
}

Counts& counts() {
  static Counts one;
  return one;
}

bool& strict() {
  static bool one = true;
  return one;
}

bool& knows_nhwc() {
  static bool one = true;
  return one;
}

std::size_t& free_bytes() {
  static std::size_t bytes = std::size_t{8} << 30;
  return bytes;
}

Faults& faults() {
  static Faults one;
  return one;
}

bool can_run(cudaStream_t stream, int algorithm) {
  const auto among = [algorithm](const std::vector<int>& all) {
    return std::find(all.begin(), all.end(), algorithm) != all.end();
  };
  return !among(faults().failing) && (stream->captured == nullptr || !among(faults().uncaptured));
}

}  // namespace stand_in

void spin(long long /*cycles*/, cudaStream_t stream) {
  enqueue(stream, [] {});
  timing() = true;
}

}  // namespace tg::engine::cuda

extern "C" {

cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) { return error == cudaErrorMemoryAllocation ? "out of memory" : "?"; }
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = free_bytes();
  return cudaSuccess;
}

// What was never written is no number.
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (bytes > free_bytes()) return cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xff, bytes);
  return cudaSuccess;
}
// Waits for all of the device, as the real one does.
cudaError_t cudaFree(void* memory) {
  while (!queue().empty()) run_next();
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->captured != nullptr) return cudaErrorStreamCaptureUnsupported;
  while (!queue().empty()) run_next();
  return cudaSuccess;
}
// One piece of work is done for each time somebody asks.
cudaError_t cudaStreamQuery(cudaStream_t) {
  if (queue().empty()) return cudaSuccess;
  if (!faults().hung) run_next();
  return cudaErrorNotReady;
}
// All streams share one queue.
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  while (event->pending > 0) run_next();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return stream->captured != nullptr ? cudaErrorStreamCaptureUnsupported : record(event, stream);
}
// One that waits is asked once in vain, as on a device.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->pending == 0) return cudaSuccess;
  while (event->pending > 0 && !faults().hung) run_next();
  return cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  while (event->pending > 0) run_next();
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 1;
  timing() = false;
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  enqueue(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  enqueue(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->captured = std::make_unique<CUgraph_st>();
  ++counts().captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = stream->captured.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new CUgraphExec_st{graph->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const Node& node : graph->nodes) push(node);
  ++counts().graph_launches;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}
}

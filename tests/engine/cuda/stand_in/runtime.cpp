#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "engine/cuda/trials/spin.h"
#include "tests/engine/cuda/stand_in/device.h"

using tg::engine::cuda::stand_in::counts;
using tg::engine::cuda::stand_in::enqueue;
using tg::engine::cuda::stand_in::faults;
using tg::engine::cuda::stand_in::free_bytes;
using tg::engine::cuda::stand_in::Work;

struct CUgraph_st {
  std::vector<Work> works;
};
struct CUgraphExec_st {
  std::vector<Work> works;
};
struct CUstream_st {
  std::deque<Work> queue;
  std::size_t done = 0;                  // out of all that was ever queued
  bool late = true;                      // runs only when a caller waits for it
  std::unique_ptr<CUgraph_st> captured;  // while it is
  std::size_t queued() const { return done + queue.size(); }
};
// The place in a stream that it was last recorded at.
struct CUevent_st {
  std::shared_ptr<CUstream_st> stream;
  std::size_t place = 0;
  bool is_done() const { return stream == nullptr || stream->done >= place; }
};

namespace {

// Events may outlive them.
std::map<cudaStream_t, std::shared_ptr<CUstream_st>>& streams() {
  static std::map<cudaStream_t, std::shared_ptr<CUstream_st>> all;
  return all;
}

std::map<void*, std::size_t>& on_device() {  // bytes by address
  static std::map<void*, std::size_t> all;
  return all;
}

std::set<void*>& page_locked() {
  static std::set<void*> all;
  return all;
}

// What is only timed need not run: between spin and the question for the time.
bool& timing() {
  static bool one = false;
  return one;
}

void run_next(CUstream_st& stream) {
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  work();  // it may first run what it waits for on another stream
  ++stream.done;
}

void run_to(CUstream_st& stream, std::size_t place) {
  while (stream.done < place) run_next(stream);
}

void push(CUstream_st& stream, Work work) {
  stream.queue.push_back(std::move(work));
  if (!stream.late) run_to(stream, stream.queued());
}

// What was never written is no number.
void* unwritten(std::size_t bytes) {
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  return std::memset(memory, 0xff, bytes);
}

// Runs the work of the whole device, as freeing memory waits for it.
void run_all() {
  for (const auto& [address, stream] : streams()) {
    if (stream->queue.empty()) continue;
    ++counts().frees_under_work;
    run_to(*stream, stream->queued());
  }
}

}  // namespace

namespace tg::engine::cuda {
namespace stand_in {

void enqueue(cudaStream_t stream, Work work) {
  if (stream->captured != nullptr) {
    stream->captured->works.push_back(std::move(work));
    return;
  }
  ++counts().launches;
  if (!timing()) push(*stream, std::move(work));
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

std::size_t taken_bytes() {
  std::size_t sum = 0;
  for (const auto& [address, bytes] : on_device()) sum += bytes;
  return sum;
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

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (bytes > free_bytes()) return cudaErrorMemoryAllocation;
  *memory = unwritten(bytes);
  on_device().emplace(*memory, bytes);
  return cudaSuccess;
}
// Waits for all of the device, as the real one does.
cudaError_t cudaFree(void* memory) {
  run_all();
  on_device().erase(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  if (faults().no_page_locked_memory) return cudaErrorMemoryAllocation;
  *memory = unwritten(bytes);
  page_locked().insert(*memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) { return cudaMallocHost(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) {
  page_locked().erase(memory);
  return cudaFree(memory);
}
// Accepts the first address of an allocation, or one in it.
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  *attributes = {};
  const auto after = page_locked().upper_bound(const_cast<void*>(address));
  if (after == page_locked().begin()) return cudaSuccess;
  void* const memory = *std::prev(after);
  const auto offset = static_cast<const std::byte*>(address) - static_cast<const std::byte*>(memory);
  if (static_cast<std::size_t>(offset) < malloc_usable_size(memory)) attributes->type = cudaMemoryTypeHost;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
// An engine has two: the first one computes, the second one copies.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const auto made = std::make_shared<CUstream_st>();
  made->late = streams().size() % 2 == 0 ? faults().computes_late : faults().copies_late;
  *stream = made.get();
  streams().emplace(made.get(), made);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream->queue.empty()) ++counts().frees_under_work;
  run_to(*stream, stream->queued());
  streams().erase(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->captured != nullptr) return cudaErrorStreamCaptureUnsupported;
  run_to(*stream, stream->queued());
  return cudaSuccess;
}
// Each query does one piece of work.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream->queue.empty()) return cudaSuccess;
  if (!faults().hung) run_next(*stream);
  return cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (stream->captured != nullptr) return cudaErrorStreamCaptureUnsupported;
  if (event->stream != nullptr) push(*stream, [other = event->stream, place = event->place] { run_to(*other, place); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream->captured != nullptr) return cudaErrorStreamCaptureUnsupported;
  *event = {streams().at(stream), stream->queued()};
  return cudaSuccess;
}
// One that waits is asked once in vain, as on a device.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->is_done()) return cudaSuccess;
  if (!faults().hung) run_to(*event->stream, event->place);
  return cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!event->is_done()) run_to(*event->stream, event->place);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = faults().milliseconds;
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
  *executable = new CUgraphExec_st{graph->works};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const Work& work : graph->works) push(*stream, work);
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

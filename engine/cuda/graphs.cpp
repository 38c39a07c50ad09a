#include "engine/cuda/graphs.h"

#include <algorithm>
#include <exception>

#include "kernels/cuda/check.h"

namespace tg::engine::cuda {
namespace {

// The state has two halves; gradients go to one array, or to two more in which parts of a batch are summed.
constexpr std::size_t kMaxGraphs = 8;

// Captures the calling thread only: others may use the device meanwhile.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    TG_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (!ended_) cudaStreamEndCapture(stream_, &graph_);  // the work could not be queued, and the stream is needed
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    if (!ended_) cudaGetLastError();
  }

  cudaGraph_t end() {
    ended_ = true;
    TG_CUDA(cudaStreamEndCapture(stream_, &graph_));
    return graph_;
  }

 private:
  const cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  bool ended_ = false;
};

}  // namespace

Graph capture(cudaStream_t stream, const Enqueue& enqueue) {
  Capture capture(stream);
  enqueue();
  cudaGraphExec_t graph = nullptr;
  TG_CUDA(cudaGraphInstantiate(&graph, capture.end(), 0));
  return Graph(graph);
}

void Graphs::run(const Key& key, cudaStream_t stream, const Enqueue& enqueue) {
  if (!warm_) {
    enqueue();
    warm_ = true;
    return;
  }
  auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) { return each.key == key; });
  if (entry == entries_.end()) {
    entries_.push_front({key, nullptr});
    try {
      entries_.front().graph = capture(stream, enqueue);
    } catch (const std::exception& e) {  // if the device has failed, the call below reports it
      cudaGetLastError();
      not_captured_ = e.what();
    }
    if (entries_.size() > kMaxGraphs) entries_.pop_back();
  } else {
    entries_.splice(entries_.begin(), entries_, entry);
  }
  if (entries_.front().graph == nullptr)
    enqueue();
  else
    TG_CUDA(cudaGraphLaunch(entries_.front().graph.get(), stream));
}

}  // namespace tg::engine::cuda

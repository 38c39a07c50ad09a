// Captured launches: the work that a function queues on a stream becomes a CUDA graph, which is launched as a whole. A
// graph holds the addresses that it was captured with, so there is one for each place of parameters and gradients: a
// run's state has two halves, for even and odd steps. Work that a library does not let us capture runs without a graph.
// One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <type_traits>

namespace tg::engine::cuda {

struct DestroyGraph {
  void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;

// Queues work on a stream.
using Enqueue = std::function<void()>;

// Captures the work that the function queues, without running it. Throws what the function throws, and
// std::runtime_error naming the call.
Graph capture(cudaStream_t stream, const Enqueue& enqueue);

class Graphs {
 public:
  // The changing values that a graph depends on.
  struct Key {
    const float* parameters = nullptr;
    const float* gradients = nullptr;
    bool operator==(const Key&) const = default;
  };
  // Queues the work, captured if possible. The very first time it runs without a graph: libraries load kernels and
  // allocate memory when they are first called, and a capture allows neither. The function is called a second time if
  // it could not be captured. Throws std::runtime_error naming the call.
  void run(const Key& key, cudaStream_t stream, const Enqueue& enqueue);

  // The reason of the last capture that failed; empty if all succeeded.
  const std::string& not_captured() const { return not_captured_; }

 private:
  struct Entry {
    Key key;
    Graph graph;  // null if the work cannot be captured
  };

  bool warm_ = false;
  std::string not_captured_;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tg::engine::cuda

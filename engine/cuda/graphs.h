// Captured launches: what a function queues on a stream becomes a CUDA graph, which is launched again as a whole. A
// graph holds the addresses that it was captured with, so there is one for each place of parameters and gradients: a
// run's state has two halves, for even and odd steps. What a library does not let capture runs as it is. One thread at
// a time.
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

// What the function queues, as a graph; nothing of it runs. Throws what the function throws, and std::runtime_error
// naming the call.
Graph capture(cudaStream_t stream, const Enqueue& enqueue);

class Graphs {
 public:
  // What a graph depends on, beside what never changes.
  struct Key {
    const float* parameters = nullptr;
    const float* gradients = nullptr;
    bool operator==(const Key&) const = default;
  };
  // Queues the work, captured where it can be. The very first time it runs as it is: libraries load kernels and take
  // memory when they are first called, and a capture allows neither. The function may be called twice: again where it
  // could not be captured. Throws std::runtime_error naming the call.
  void run(const Key& key, cudaStream_t stream, const Enqueue& enqueue);

  // What stood against the last capture that failed; empty where all succeeded.
  const std::string& not_captured() const { return not_captured_; }

 private:
  struct Entry {
    Key key;
    Graph graph;  // null: it cannot be captured
  };

  bool warm_ = false;
  std::string not_captured_;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tg::engine::cuda

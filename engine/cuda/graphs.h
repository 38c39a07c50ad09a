// Captured launches: what a function queues on a stream becomes a CUDA graph, which is launched again as a whole. A
// graph holds the addresses that it was captured with, so there is one for each place of parameters and gradients: a
// run's state has two halves, for even and odd steps. One thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <list>
#include <memory>
#include <type_traits>

namespace tg::engine::cuda {

class Graphs {
 public:
  // What a graph depends on, beside what never changes.
  struct Key {
    const float* parameters = nullptr;
    const float* gradients = nullptr;
    bool operator==(const Key&) const = default;
  };
  // Queues work on the stream.
  using Enqueue = std::function<void()>;

  // Queues the work, captured where it can be. The very first time it runs as it is: libraries load kernels and take
  // memory when they are first called, and a capture allows neither. Throws std::runtime_error naming the call.
  void run(const Key& key, cudaStream_t stream, const Enqueue& enqueue);

 private:
  struct Destroy {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, Destroy>;
  struct Entry {
    Key key;
    Executable graph;
  };

  bool warm_ = false;
  std::list<Entry> entries_;  // most recently used first
};

}  // namespace tg::engine::cuda

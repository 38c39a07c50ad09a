// How far a launch has come, for the host that waits for its parts. After each part a kernel writes the launch's number
// to a word of page-locked memory, and the host looks there. An event would not do: one that is recorded by a graph
// answers for the launch before until the graph has come to it.
//
// One thread; one launch at a time.
#pragma once

#include <cstdint>

#include "kernels/cuda/memory.h"

namespace tg::engine::cuda {

class Progress {
 public:
  explicit Progress(std::size_t parts);

  // Queues what says that the part is done. number: of the launch, in device memory; never 0, and another in each
  // launch.
  void queue(std::size_t part, const std::uint64_t* number, cudaStream_t stream);
  // Returns once launch `number` on the stream is through with the part. Throws std::runtime_error where the device
  // has failed, or has hung: its patience (wait.h) begins anew with each part.
  void wait(std::size_t part, std::uint64_t number, cudaStream_t stream);

 private:
  kernels::cuda::PinnedArray<std::uint64_t> words_;  // by part
};

}  // namespace tg::engine::cuda

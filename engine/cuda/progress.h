// Tells the host how far a launch has come. After each part a kernel writes the launch's number to a word of
// page-locked memory, which the host polls. An event would not do: until a graph reaches the event it records, the
// event still answers for the previous launch.
//
// One thread; one launch at a time.
#pragma once

#include <cstdint>

#include "kernels/cuda/memory.h"

namespace tg::engine::cuda {

class Progress {
 public:
  explicit Progress(std::size_t parts);

  // Queues the message that the part is done. number: the launch's, in device memory; never 0, and different in each
  // launch.
  void queue(std::size_t part, const std::uint64_t* number, cudaStream_t stream);
  // Returns once launch `number` on the stream has finished the part. Throws std::runtime_error if the device has
  // failed or hung: the patience (wait.h) begins anew with each part.
  void wait(std::size_t part, std::uint64_t number, cudaStream_t stream);

 private:
  kernels::cuda::PinnedArray<std::uint64_t> words_;  // by part
};

}  // namespace tg::engine::cuda

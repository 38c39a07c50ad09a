#include "engine/cuda/progress.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "engine/cuda/operators/announce.h"

namespace tg::engine::cuda {
namespace {

constexpr int kLooks = 64;  // at the word, before the device is asked whether it is well

}  // namespace

Progress::Progress(std::size_t parts) : words_(parts) { std::ranges::fill(words_.span(), std::uint64_t{0}); }

void Progress::queue(std::size_t part, const std::uint64_t* number, cudaStream_t stream) {
  announce(number, words_.data() + part, stream);
}

void Progress::wait(std::size_t part, std::uint64_t number, cudaStream_t stream) {
  const std::atomic_ref word(words_.data()[part]);
  const auto is_there = [&] {
    for (int look = 0; look < kLooks; ++look) {
      if (word.load(std::memory_order_acquire) == number) return true;
      std::this_thread::yield();
    }
    return false;
  };
  while (!is_there()) {
    const cudaError_t result = cudaStreamQuery(stream);
    if (result == cudaErrorNotReady) {
      cudaGetLastError();  // or the check after the next kernel's launch would find it
      continue;
    }
    kernels::cuda::require_success(result, "cudaStreamQuery");
    if (!is_there()) throw std::runtime_error("the device ended a launch without a word of one of its parts");
  }
}

}  // namespace tg::engine::cuda

#include "engine/cuda/progress.h"

#include <algorithm>
#include <atomic>

#include "engine/cuda/operators/announce.h"
#include "kernels/cuda/wait.h"

namespace tg::engine::cuda {
namespace {

constexpr int kLooks = 64;  // polls of the word between two checks that the device is alive
constexpr const char* kCall = "a part of a backward pass";

}  // namespace

Progress::Progress(std::size_t parts) : words_(parts) { std::ranges::fill(words_.span(), std::uint64_t{0}); }

void Progress::queue(std::size_t part, const std::uint64_t* number, cudaStream_t stream) {
  announce(number, words_.data() + part, stream);
}

void Progress::wait(std::size_t part, std::uint64_t number, cudaStream_t stream) {
  const std::atomic_ref word(words_.data()[part]);
  const kernels::cuda::Deadline deadline(kernels::cuda::kPassPatience, kCall);
  const auto is_there = [&] {
    for (int look = 0; look < kLooks; ++look) {
      if (word.load(std::memory_order_acquire) == number) return true;
      deadline.go_on();
    }
    return false;
  };
  while (!is_there())
    if (kernels::cuda::is_done(stream) && !is_there())
      kernels::cuda::fail_on_device("the device ended a launch without a word of one of its parts");
}

}  // namespace tg::engine::cuda

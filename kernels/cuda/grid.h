// Launch shapes: how many threads a block has, and how many blocks a number of threads takes.
#pragma once

#include <cstddef>

#include "kernels/cuda/host_device.h"

namespace tg::kernels::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kThreads = 256;  // threads of a block

inline constexpr unsigned blocks_for(std::size_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// The thread's number in a grid of one dimension.
TG_HOST_DEVICE inline std::size_t thread_number(unsigned block, unsigned thread) {
  return std::size_t{block} * kThreads + thread;
}

}  // namespace tg::kernels::cuda

// The two forms of a kernel of this folder. Tests run both on the host, thread by thread (tests/engine/cuda/grid.h),
// and launch.cuh on the device.
//
//   body     threads(), and operator()(thread) for each thread below it: a thread writes outputs of its own and reads
//            no other's.
//   in steps blocks(), steps(), and step(step, block, thread, cells) for every thread of a block, one step after the
//            other: all threads are through with one before any begins the next. cells: one Cell for each thread of the
//            block, which carries results from step to step and from thread to thread. Within a step no thread writes
//            what another one touches.
//
// Both are plain values made on the host; the pointers in them are the device's.
#pragma once

#include <cstdint>

#include "kernels/cuda/host_device.h"

// Before a loop of a few rounds: the device's compiler would otherwise hold several rounds in registers at once, and
// spill them on some architectures.
#ifdef __CUDA_ARCH__
#define TG_NO_UNROLL _Pragma("unroll 1")
#else
#define TG_NO_UNROLL
#endif

namespace tg::engine::cuda {

inline constexpr int kThreads = 256;  // threads of a block

inline constexpr std::uint64_t blocks_of(std::uint64_t threads) { return (threads + kThreads - 1) / kThreads; }

}  // namespace tg::engine::cuda

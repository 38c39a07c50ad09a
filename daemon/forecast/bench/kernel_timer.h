// Times the exchange's kernels, in about a step's order, with arrays that no cache holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stop_token>

#include "daemon/forecast/machine.h"
#include "kernels/kernels.h"
#include "kernels/memory_space.h"

namespace tg::daemon {

// The elements of the gradient, and of parameters and momentum before and after a step: more than a cache holds.
inline constexpr std::size_t kTimedElements = 8u << 20;
inline constexpr std::uint64_t kTimedBytes = 5 * kTimedElements * sizeof(float);
inline constexpr std::uint64_t kTimedSeed = 20171204;  // of values that are measured with

// On the calling thread; space: where gradient and state are. Medians of some rounds, since a step meets the other
// programs of a machine, too. A stop is looked at between rounds; what it cut short is of no use. Throws where there is
// no memory.
KernelCosts time_kernels(const kernels::Kernels& kernels, kernels::MemorySpace& space, const std::stop_token& stop);

}  // namespace tg::daemon

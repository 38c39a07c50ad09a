// How long arrays must be so that no cache holds one: those that roofs and kernels are measured with, all of one size,
// or a ratio of the two would compare memory with a cache. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/base/status.h"

namespace tg::daemon {

// A gradient and both halves of parameters and momentum; what else is measured takes less than 32 MiB beside them.
inline constexpr std::size_t kLargeArrays = 5;

// Elements (float32) of one array, a multiple of a large chunk: twice the last level of cache, 64 to 256 MiB, and fewer
// where kLargeArrays of them would take more than half of memory_bytes. An error where that leaves less than 32 MiB.
Result<std::size_t> large_elements(std::uint64_t cache_bytes, std::uint64_t memory_bytes);

// Of this processor; 0 where the system does not say.
std::uint64_t last_cache_bytes();

}  // namespace tg::daemon

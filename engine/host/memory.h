// How much memory this process may still take: what the machine has left and what its control groups allow, whichever
// is least. Any thread.
#pragma once

#include <cstdint>

namespace tg::engine {

// Bytes; the largest number where nothing can be found out.
std::uint64_t available_memory();

}  // namespace tg::engine

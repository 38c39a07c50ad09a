// How much memory this process may still take: what the machine has left and what its control groups allow, whichever
// is least. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace tg::engine {

// Bytes; the largest number where nothing can be found out. root: of the file system, for tests.
std::uint64_t available_memory(const std::string& root = "");

}  // namespace tg::engine

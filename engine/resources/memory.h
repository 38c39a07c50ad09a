// How much memory this process may still take: what the machine has left or its control groups allow, whichever is
// less. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace tg::engine {

// Bytes; the largest number if nothing is known. root: the file system's root, for tests.
std::uint64_t available_memory(const std::string& root = "");

}  // namespace tg::engine

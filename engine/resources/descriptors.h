// How many files and connections this process may have open. A library that finds none left aborts or stops accepting,
// so a node checks once, when it starts.
#pragma once

#include <cstdint>

#include "kernels/base/status.h"

namespace tg::engine {

// Raises the process's soft limit to `needed` if it is lower. The error says how many are missing and what to do.
// what: what needs them, such as "a mesh of 4 nodes".
Status reserve_descriptors(std::uint64_t needed, const std::string& what);

// How many it may have now.
std::uint64_t allowed_descriptors();

}  // namespace tg::engine

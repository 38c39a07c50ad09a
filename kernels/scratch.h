// Memory that a kernel needs for the length of one call: the calling thread's own, kept and reused, so that the hot
// path allocates nothing once the largest chunk has been seen. At most one kernel of a thread uses it at a time.
#pragma once

#include <cstddef>
#include <span>

namespace tg::kernels {

// Contents: whatever the last user left. Valid until the thread's next call.
std::span<std::byte> thread_scratch(std::size_t bytes);

}  // namespace tg::kernels

// Memory that a kernel needs during one call. It belongs to the calling thread and is reused, so that the hot path
// allocates nothing once the largest chunk has been seen. At most one kernel of a thread uses it at a time.
#pragma once

#include <cstddef>
#include <span>

namespace tg::kernels {

// The contents are whatever the last user left. Valid until the thread's next call.
std::span<std::byte> thread_scratch(std::size_t bytes);

}  // namespace tg::kernels

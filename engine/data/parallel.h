// Calls work(i) for each i below `count`, on `threads` threads including this one, in any order. Returns when all have
// ended. After an exception no further calls are begun, and the first exception is rethrown. Any thread.
#pragma once

#include <cstddef>
#include <functional>

namespace tg::engine {

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tg::engine

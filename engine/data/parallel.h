// Calls work(i) for each i below `count`, on `threads` threads with this one among them, in any order. Returns when all
// have ended; the first exception is thrown then, and what was not begun is left out. Any thread.
#pragma once

#include <cstddef>
#include <functional>

namespace tg::engine {

void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace tg::engine

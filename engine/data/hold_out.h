// Which samples are held back for testing where the data have no part for it. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tg::engine {

// Of each class the share, rounded to the nearest whole number of samples, drawn from the seed; a class keeps one for
// training. 1 where a sample is held back. The samples' order decides which: it has to be the same on every node.
std::vector<char> hold_out(std::span<const std::uint16_t> labels, std::size_t classes, double share,
                           std::uint64_t seed);

}  // namespace tg::engine

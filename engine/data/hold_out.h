// Chooses the samples to hold back for testing if the data have no test set. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tg::engine {

// Returns 1 for each sample that is held back: the given share of each class, rounded to the nearest whole number and
// drawn from the seed; a class keeps at least one for training. The samples' order must be the same on every node.
std::vector<char> hold_out(std::span<const std::uint16_t> labels, std::size_t classes, double share,
                           std::uint64_t seed);

}  // namespace tg::engine

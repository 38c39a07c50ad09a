// The roof of the kernels' benchmarks: what reading floats and adding them up costs one core. Eight independent chains,
// so that no adder waits; with and without a prefetch 4 KiB ahead, in each width of registers. The fastest counts.
// Beside it, not the roof: the pass that asks for eight pages in turns, as kernels/x86/read_ahead.h does.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tg::kernels {

using ReadAndSum = float (*)(const float* values, std::size_t elements);

std::vector<std::pair<const char*, ReadAndSum>> readers();
std::vector<std::pair<const char*, ReadAndSum>> readers_in_turns();

}  // namespace tg::kernels

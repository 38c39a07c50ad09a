// What the hardware does with nothing else to do, to compare with: reading, copying, multiplying. Measured, not looked
// up. peak_gflops throws where there is no thread to be had.
#pragma once

#include <span>

namespace tg::daemon {

// One pass of this thread over arrays that no cache should hold, of a multiple of 128 floats and one length: 10^9 of
// them per second read and summed, and copied.
double read_rate(std::span<const float> values);
double copy_rate(std::span<const float> from, std::span<float> to);

// Fused multiply-adds in the widest registers, on this many threads at once: 10^9 operations per second; a multiply-add
// is two. 0 on processors without AVX2 and FMA. The best of some rounds: where other programs take a share of the
// cores, the processor could still do more.
double peak_gflops(int threads);

}  // namespace tg::daemon

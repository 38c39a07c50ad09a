// What the hardware could do at best, to compare with: reading, copying, multiplying. Measured, not looked up.
// Each call takes some tenths of a second of the calling thread (peak_gflops: of `threads` threads). The best of some
// rounds, as the kernels' times are; throws where there is no memory or no thread.
#pragma once

#include <cstddef>
#include <stop_token>

namespace tg::daemon {

// One core over arrays of so many floats, which no cache should hold: 10^9 of them per second read and summed, and
// copied. A multiple of 1024; 0 if it was stopped before.
double read_rate(std::size_t floats, const std::stop_token& stop = {});
double copy_rate(std::size_t floats, const std::stop_token& stop = {});

// Fused multiply-adds in the widest registers, on this many threads at once: 10^9 operations per second; a multiply-add
// is two. 0 on processors without AVX2 and FMA.
double peak_gflops(int threads);

}  // namespace tg::daemon

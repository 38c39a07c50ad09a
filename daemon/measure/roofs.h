// What the hardware could do at best, to compare with: reading, copying, multiplying. Measured, not looked up.
// Each call takes some tens of milliseconds of the calling thread (peak_gflops: of `threads` threads).
#pragma once

namespace tg::daemon {

// One core over arrays that no cache holds: 10^9 floats per second read and summed, and copied.
double read_rate();
double copy_rate();

// Fused multiply-adds in the widest registers, on this many threads at once: 10^9 operations per second; a multiply-add
// is two. 0 on processors without AVX2 and FMA.
double peak_gflops(int threads);

}  // namespace tg::daemon

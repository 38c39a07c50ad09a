// The kernels' contract. Kernels are arithmetic on raw spans of host memory. Each instruction set has two tables of
// them: the codec kernels, and the host's tensor kernels, which a run sees as one memory space among others.
//
// Shapes. Every span of elements has a length that is a multiple of kBlock and starts 64-byte aligned.
// Segments are padded to kBlock with zeros in every flat array, so no kernel has a tail: the padding of a
// gradient is 0, its codes are 0, its sums are 0, its parameters stay 0. Payload bytes may start anywhere.
// Exactness. All variants give the same bits for the same input (statistics and floats included); the scalar
// variant defines what is right. Tests compare every variant present with it.
// Threads. All functions are pure; any thread may call them. FTZ/DAZ must be off in the caller.
// Memory. A kernel allocates nothing, except that each calling thread keeps room for the raw payload of the largest
// chunk it has entropy-coded (scratch.h).
// Errors. A kernel never fails on numbers; the functions that read payloads from a peer return false for bytes
// that break the format, write nothing outside their spans, and leave the output unspecified then.
//
// Equations are those of Wen et al., "TernGrad", NIPS 2017.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/codec_kernels.h"
#include "kernels/host_kernels.h"
#include "kernels/types.h"

namespace tg::kernels {

struct Kernels : CodecKernels, HostKernels {
  std::string_view name;  // "scalar", "avx2", "avx512"
};

// The variants that this processor can run, best first; the last is scalar.
const std::vector<const Kernels*>& available();
// "auto" is the best variant that passes its self-test. An unknown name is an error that lists the variants.
Result<const Kernels*> select(std::string_view name);
// Compares every function of the table with the scalar one over awkward lengths. False if any result differs.
bool self_test(const Kernels& kernels);

// Philox4x32-10 (Salmon et al., SC 2011), for everything that draws: out = 4 words.
void philox4x32(const std::uint32_t counter[4], std::uint64_t key, std::uint32_t out[4]);

}  // namespace tg::kernels

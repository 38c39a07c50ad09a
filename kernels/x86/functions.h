// The x86 variants, AVX2 (with FMA, F16C, BMI2, POPCNT) and AVX-512, bit for bit equal to the scalar one. A body that
// both share is a template in this folder; each variant's folder holds its registers, its own bodies, and table.cpp
// and rans.cpp, which instantiate the templates. Only those folders are compiled with the flags of the instruction
// set, and no function in them can be shared with another object: all but those below have internal linkage.
// dispatch.cpp asks the processor first.
#pragma once

#include "kernels/kernels.h"

namespace tg::kernels {

// A table's entropy coder functions. They are a separate object, because AVX-512's need one more feature.
struct EntropyCoder {
  decltype(CodecKernels::encode_codes_rans) encode_codes;
  decltype(CodecKernels::decode_codes_rans) decode_codes;
  decltype(CodecKernels::encode_sums_rans) encode_sums;
  decltype(CodecKernels::decode_sums_rans) decode_sums;
};

namespace avx2 {
extern const Kernels kTable;  // without an entropy coder
extern const EntropyCoder kEntropyCoder;
Statistics statistics(std::span<const float> gradient);
void ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
               Planes codes);
}  // namespace avx2

namespace avx512 {
extern const Kernels kTable;  // without an entropy coder
extern const EntropyCoder kEntropyCoder;
Statistics statistics(std::span<const float> gradient);
void ternarize(std::span<const float> gradient, std::size_t first, const DrawKey& key, const Scale& scale,
               Planes codes);
}  // namespace avx512

}  // namespace tg::kernels

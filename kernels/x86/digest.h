// The digest over registers of 64-bit lanes; `Words` is the instruction set's (vector.h). Internal linkage.
#pragma once

#include <immintrin.h>

#include "kernels/constants.h"
#include "kernels/kernels.h"
#include "kernels/x86/read_ahead.h"

namespace tg::kernels {
namespace {

template <class Words>
inline std::uint64_t digest_x86(std::span<const float> values, std::uint64_t first, std::uint64_t salt) {
  const float* const at = values.data();
  const std::size_t elements = values.size();
  constexpr std::size_t kUnroll = 4;  // independent chains
  static_assert(kBlock % (kUnroll * Words::kWidth) == 0, "no tail");
  const Words salts = Words::all(salt), one = Words::all(1), stride = Words::all(Words::kWidth);
  const Words k1 = Words::all(kDigest1), k2 = Words::all(kDigest2);
  Words positions = Words::count_from(first);
  Words totals[kUnroll] = {Words::all(0), Words::all(0), Words::all(0), Words::all(0)};
  for (std::size_t i = 0; i < elements; i += kUnroll * Words::kWidth) {
    for (std::size_t line = 0; line < kUnroll * Words::kWidth; line += kLineFloats) read_ahead(at, i + line);
    for (std::size_t part = 0; part < kUnroll; ++part) {
      const Words t = positions ^ salts;
      const Words u = Words::product(t, k1) + t.high();
      const Words v = Words::product(u ^ u.high(), k2) + u;
      const Words bits = Words::bits_of(at + i + part * Words::kWidth);
      totals[part] = totals[part] + Words::product(bits ^ u.high(), v.high() | one);
      positions = positions + stride;
    }
  }
  return ((totals[0] + totals[1]) + (totals[2] + totals[3])).total();
}

}  // namespace
}  // namespace tg::kernels

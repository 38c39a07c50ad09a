// The table of an x86 variant, made of shared bodies and its own. `Floats`, `Words` and `Sums` are the instruction
// set's (vector.h): with them the templates become functions of that variant alone. dispatch.cpp adds the entropy
// coder. Internal linkage.
#pragma once

#include "kernels/kernels.h"
#include "kernels/x86/apply.h"
#include "kernels/x86/codes.h"
#include "kernels/x86/digest.h"
#include "kernels/x86/elementwise.h"
#include "kernels/x86/float16.h"
#include "kernels/x86/receive.h"
#include "kernels/x86/sums.h"

namespace tg::kernels {
namespace {

template <class Floats, class Words, class Sums>
constexpr Kernels table_x86(std::string_view name, decltype(HostKernels::statistics) statistics,
                            decltype(HostKernels::ternarize) ternarize) {
  return {
      {
          .count = count_x86,
          .encode_codes = encode_codes_x86,
          .decode_codes = decode_codes_x86,
          .accumulate_codes = accumulate_codes_x86<Sums>,
          .accumulate_planes = accumulate_planes_x86<Sums>,
          .encode_sums = encode_sums_x86<Sums>,
          .decode_sums = decode_sums_x86<Sums>,
          .encode_codes_rans = nullptr,
          .decode_codes_rans = nullptr,
          .encode_sums_rans = nullptr,
          .decode_sums_rans = nullptr,
          .accumulate_floats = accumulate_floats_x86<Floats>,
          .accumulate_scaled = accumulate_scaled_x86<Floats>,
          .encode_float16 = encode_float16_x86<Floats>,
          .decode_float16 = decode_float16_x86<Floats>,
          .accumulate_float16 = accumulate_float16_x86<Floats>,
      },
      {
          .statistics = statistics,
          .ternarize = ternarize,
          .apply_sums = apply_x86<Floats, std::int8_t>,
          .apply_floats = apply_x86<Floats, float>,
          .apply_codes = apply_codes_x86<Floats, Sums>,
          .add_scaled = add_scaled_x86<Floats>,
          .average = average_x86<Floats>,
          .digest = digest_x86<Words>,
      },
      name,
  };
}

}  // namespace
}  // namespace tg::kernels

#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {

constinit const Kernels kTable = {
    .name = "scalar",
    .statistics = statistics,
    .ternarize = ternarize,
    .count = count,
    .encode_codes = encode_codes,
    .decode_codes = decode_codes,
    .accumulate_codes = accumulate_codes,
    .accumulate_planes = accumulate_planes,
    .encode_sums = encode_sums,
    .decode_sums = decode_sums,
    .encode_codes_rans = encode_codes_rans,
    .decode_codes_rans = decode_codes_rans,
    .encode_sums_rans = encode_sums_rans,
    .decode_sums_rans = decode_sums_rans,
    .apply_sums = apply_sums,
    .apply_floats = apply_floats,
    .apply_codes = apply_codes,
    .accumulate_floats = accumulate_floats,
    .accumulate_scaled = accumulate_scaled,
    .encode_halves = encode_halves,
    .decode_halves = decode_halves,
    .accumulate_halves = accumulate_halves,
    .add_scaled = add_scaled,
    .average = average,
    .digest = digest,
};

}  // namespace tg::kernels::scalar

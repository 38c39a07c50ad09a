#include "kernels/scalar/functions.h"

namespace tg::kernels::scalar {

constinit const Kernels kTable = {
    {
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
        .accumulate_floats = accumulate_floats,
        .accumulate_scaled = accumulate_scaled,
        .encode_float16 = encode_float16,
        .decode_float16 = decode_float16,
        .accumulate_float16 = accumulate_float16,
    },
    {
        .statistics = statistics,
        .ternarize = ternarize,
        .apply_sums = apply_sums,
        .apply_floats = apply_floats,
        .apply_codes = apply_codes,
        .add_scaled = add_scaled,
        .average = average,
        .digest = digest,
    },
    "scalar",
};

}  // namespace tg::kernels::scalar

#include "kernels/avx512/functions.h"

namespace tg::kernels::avx512 {

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
        .encode_halves = encode_halves,
        .decode_halves = decode_halves,
        .accumulate_halves = accumulate_halves,
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
    "avx512",
};

}  // namespace tg::kernels::avx512

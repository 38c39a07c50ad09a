#include "kernels/avx2/functions.h"

namespace tg::kernels::avx2 {

constinit const Kernels kTable = {
    .name = "avx2",
    .statistics = statistics,
    .ternarize = ternarize,
    .encode_codes = encode_codes,
    .decode_codes = decode_codes,
    .accumulate_codes = accumulate_codes,
    .accumulate_planes = accumulate_planes,
    .encode_sums = encode_sums,
    .decode_sums = decode_sums,
    .apply_sums = apply_sums,
    .apply_floats = apply_floats,
    .accumulate_floats = accumulate_floats,
    .add_scaled = add_scaled,
    .average = average,
    .digest = digest,
};

}  // namespace tg::kernels::avx2

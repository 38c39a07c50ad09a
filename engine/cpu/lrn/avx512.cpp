#include "engine/cpu/lrn/rows.h"

namespace tg::engine::cpu::lrn {

constinit const Kernels kAvx512{"avx512", forward_rows<64>, backward_rows<64>};

}  // namespace tg::engine::cpu::lrn

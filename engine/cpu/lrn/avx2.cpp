#include "engine/cpu/lrn/rows.h"

namespace tg::engine::cpu::lrn {

constinit const Kernels kAvx2{"avx2", forward_rows<32>, backward_rows<32>};

}  // namespace tg::engine::cpu::lrn

#include "engine/cpu/lrn/rows.h"

namespace tg::engine::cpu::lrn {

constinit const Kernels kScalar{"scalar", forward_rows<16>, backward_rows<16>};

}  // namespace tg::engine::cpu::lrn

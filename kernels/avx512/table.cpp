#include "kernels/x86/table.h"

#include "kernels/avx512/vector.h"
#include "kernels/x86/functions.h"

namespace tg::kernels::avx512 {

constinit const Kernels kTable = table_x86<Floats, Words, Sums>("avx512", statistics, ternarize);

}  // namespace tg::kernels::avx512

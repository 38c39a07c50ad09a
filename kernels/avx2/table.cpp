#include "kernels/x86/table.h"

#include "kernels/avx2/vector.h"
#include "kernels/x86/functions.h"

namespace tg::kernels::avx2 {

constinit const Kernels kTable = table_x86<Floats, Words, Sums>("avx2", statistics, ternarize);

}  // namespace tg::kernels::avx2

#include "kernels/x86/rans.h"

#include "kernels/avx2/states.h"
#include "kernels/avx2/vector.h"

namespace tg::kernels::avx2 {

constinit const EntropyCoder kEntropyCoder = entropy_coder_x86<States, Sums>();

}  // namespace tg::kernels::avx2

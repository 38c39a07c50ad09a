#include "kernels/x86/rans.h"

#include "kernels/avx512/states.h"
#include "kernels/avx512/vector.h"

namespace tg::kernels::avx512 {

constinit const EntropyCoder kEntropyCoder = entropy_coder_x86<States, Sums>();

}  // namespace tg::kernels::avx512

#include "kernels/x86/digest.h"

#include "kernels/avx512/functions.h"
#include "kernels/avx512/vector.h"

namespace tg::kernels::avx512 {

std::uint64_t digest(std::span<const float> values, std::uint64_t first, std::uint64_t salt) {
  return digest_x86<Words>(values.data(), values.size(), first, salt);
}

}  // namespace tg::kernels::avx512

#include "kernels/x86/sums.h"

#include "kernels/avx512/functions.h"
#include "kernels/avx512/vector.h"

namespace tg::kernels::avx512 {

std::size_t encode_sums(std::span<const std::int8_t> sums, int members, std::span<std::byte> payload) {
  return encode_sums_x86<Sums>(sums, members, payload);
}

bool decode_sums(std::span<const std::byte> payload, int members, std::span<std::int8_t> sums) {
  return decode_sums_x86<Sums>(payload, members, sums);
}

}  // namespace tg::kernels::avx512

#include "kernels/x86/codes.h"

#include "kernels/avx2/functions.h"
#include "kernels/avx2/vector.h"

namespace tg::kernels::avx2 {

std::size_t encode_codes(ConstPlanes codes, std::span<std::byte> payload) { return encode_codes_x86(codes, payload); }

bool decode_codes(std::span<const std::byte> payload, Planes codes) { return decode_codes_x86(payload, codes); }

bool accumulate_codes(std::span<const std::byte> payload, std::span<std::int8_t> sums) {
  return accumulate_codes_x86<Sums>(payload, sums);
}

void accumulate_planes(ConstPlanes codes, std::span<std::int8_t> sums) { accumulate_planes_x86<Sums>(codes, sums); }

std::uint64_t count(std::span<const std::uint64_t> plane) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : plane) ones += static_cast<std::uint64_t>(_mm_popcnt_u64(word));
  return ones;
}

}  // namespace tg::kernels::avx2

#include "kernels/x86/rans.h"

#include "kernels/avx512/functions.h"
#include "kernels/avx512/states.h"

namespace tg::kernels::avx512 {

std::size_t encode_codes_rans(ConstPlanes codes, std::span<const std::size_t> runs, std::span<std::byte> payload) {
  const std::size_t elements = codes.nonzero.size() * kWordBits;
  require_runs(runs, elements);
  require_capacity(payload.size(), codes_bound(elements));
  const std::span<std::byte> raw = thread_scratch(codes_bound(elements));
  return compress_x86<States>(raw.first(encode_codes(codes, raw)), elements, runs, payload);
}

bool decode_codes_rans(std::span<const std::byte> payload, std::span<const std::size_t> runs, Planes codes) {
  const std::size_t elements = codes.nonzero.size() * kWordBits;
  require_runs(runs, elements);
  const std::span<std::byte> raw = thread_scratch(codes_bound(elements));
  const std::size_t raw_bytes = expand_x86<States>(payload, 1, elements, runs, raw.data());
  return raw_bytes > 0 && decode_codes(raw.first(raw_bytes), codes);
}

std::size_t encode_sums_rans(std::span<const std::int8_t> sums, int members, std::span<const std::size_t> runs,
                             std::span<std::byte> payload) {
  require_runs(runs, sums.size());
  require_capacity(payload.size(), sums_bound(sums.size(), members));
  const std::span<std::byte> raw = thread_scratch(sums_bound(sums.size(), members));
  return compress_x86<States>(raw.first(encode_sums(sums, members, raw)), sums.size(), runs, payload);
}

bool decode_sums_rans(std::span<const std::byte> payload, int members, std::span<const std::size_t> runs,
                      std::span<std::int8_t> sums) {
  require_runs(runs, sums.size());
  const std::span<std::byte> raw = thread_scratch(sums_bound(sums.size(), members));
  const std::size_t raw_bytes = expand_x86<States>(payload, members, sums.size(), runs, raw.data());
  return raw_bytes > 0 && decode_sums(raw.first(raw_bytes), members, sums);
}

}  // namespace tg::kernels::avx512

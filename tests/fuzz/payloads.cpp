// Payloads of codes and sums, as a peer might send them. Input: byte 0 = members - 1 (mod 127), byte 1 = blocks (mod
// 5), the rest is the payload. Every variant must give the scalar variant's verdict and result; what is taken must
// encode to the same bytes; a payload that is refused must leave the sums that it was to be added to untouched.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/base/check.h"
#include "kernels/kernels.h"

namespace tg::kernels {
namespace {

using Payload = std::span<const std::byte>;

struct Decoded {
  explicit Decoded(std::size_t elements)
      : nonzero(elements / kWordBits), negative(elements / kWordBits), added(elements), sums(elements) {}
  bool codes_taken = false, sums_taken = false;
  AlignedArray<std::uint64_t> nonzero, negative;
  AlignedArray<std::int8_t> added, sums;
};

void check_codes(const Kernels& k, Payload payload, Decoded& d) {
  d.codes_taken = k.decode_codes(payload, {d.nonzero.span(), d.negative.span()});
  const bool added = k.accumulate_codes(payload, d.added.span());
  TG_CHECK(added == d.codes_taken, k.name);
  if (!d.codes_taken) {
    TG_CHECK(std::ranges::all_of(d.added, [](std::int8_t sum) { return sum == 0; }), k.name);
    return;
  }
  std::vector<std::byte> again(codes_bound(d.added.size()));
  again.resize(k.encode_codes({d.nonzero.span(), d.negative.span()}, again));
  TG_CHECK(std::ranges::equal(again, payload), k.name, again.size(), payload.size());
}

void check_sums(const Kernels& k, Payload payload, int members, Decoded& d) {
  d.sums_taken = k.decode_sums(payload, members, d.sums.span());
  if (!d.sums_taken) return;
  TG_CHECK(std::ranges::all_of(d.sums, [&](std::int8_t sum) { return std::abs(sum) <= members; }), k.name);
  std::vector<std::byte> again(sums_bound(d.sums.size(), members));
  again.resize(k.encode_sums(d.sums.span(), members, again));
  TG_CHECK(std::ranges::equal(again, payload), k.name, again.size(), payload.size());
}

void check_agreement(const Kernels& k, const Decoded& got, const Decoded& want) {
  TG_CHECK(got.codes_taken == want.codes_taken && got.sums_taken == want.sums_taken, k.name);
  if (want.codes_taken) {
    TG_CHECK(std::ranges::equal(got.nonzero, want.nonzero) && std::ranges::equal(got.negative, want.negative), k.name);
    TG_CHECK(std::ranges::equal(got.added, want.added), k.name);
  }
  if (want.sums_taken) TG_CHECK(std::ranges::equal(got.sums, want.sums), k.name);
}

void check_all(Payload payload, int members, std::size_t elements) {
  Decoded want(elements);
  const Kernels& scalar = *available().back();
  check_codes(scalar, payload, want);
  check_sums(scalar, payload, members, want);
  for (const Kernels* const k : available()) {
    if (k == &scalar) continue;
    Decoded got(elements);
    check_codes(*k, payload, got);
    check_sums(*k, payload, members, got);
    check_agreement(*k, got, want);
  }
}

}  // namespace
}  // namespace tg::kernels

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int members = 1 + data[0] % tg::kernels::kMostMembers;
  const std::size_t elements = data[1] % std::size_t{5} * tg::kernels::kBlock;
  tg::kernels::check_all(std::as_bytes(std::span(data + 2, size - 2)), members, elements);
  return 0;
}

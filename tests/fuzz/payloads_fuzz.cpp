// Payloads of codes and sums, raw and entropy-coded, as a peer might send them. Input: byte 0 = members - 1 (mod 127),
// byte 1 = the size (mod 7), the rest is the payload. Sizes 0 to 4: so many blocks, the last two of which are one run
// of the entropy coder, the others a run each; 5: 17 blocks; 6: as many as make the coder use all its lanes. Every
// variant must give the scalar variant's verdict and result; what is taken must encode to the same bytes; a payload
// that is refused must leave the sums that it was to be added to untouched.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/base/aligned_array.h"
#include "kernels/base/check.h"
#include "kernels/kernels.h"

namespace tg::kernels {
namespace {

using Payload = std::span<const std::byte>;
using Runs = std::span<const std::size_t>;

struct Decoded {
  explicit Decoded(std::size_t elements)
      : nonzero(elements / kWordBits),
        negative(elements / kWordBits),
        rans_nonzero(elements / kWordBits),
        rans_negative(elements / kWordBits),
        added(elements),
        sums(elements),
        rans_sums(elements) {}
  bool codes_taken = false, sums_taken = false, rans_codes_taken = false, rans_sums_taken = false;
  AlignedArray<std::uint64_t> nonzero, negative, rans_nonzero, rans_negative;
  AlignedArray<std::int8_t> added, sums, rans_sums;
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

void check_rans_codes(const Kernels& k, Payload payload, Runs runs, Decoded& d) {
  d.rans_codes_taken = k.decode_codes_rans(payload, runs, {d.rans_nonzero.span(), d.rans_negative.span()});
  if (!d.rans_codes_taken) return;
  std::vector<std::byte> again(codes_bound(d.sums.size()));
  again.resize(k.encode_codes_rans({d.rans_nonzero.span(), d.rans_negative.span()}, runs, again));
  TG_CHECK(std::ranges::equal(again, payload), k.name, again.size(), payload.size());
}

void check_rans_sums(const Kernels& k, Payload payload, int members, Runs runs, Decoded& d) {
  d.rans_sums_taken = k.decode_sums_rans(payload, members, runs, d.rans_sums.span());
  if (!d.rans_sums_taken) return;
  TG_CHECK(std::ranges::all_of(d.rans_sums, [&](std::int8_t sum) { return std::abs(sum) <= members; }), k.name);
  std::vector<std::byte> again(sums_bound(d.sums.size(), members));
  again.resize(k.encode_sums_rans(d.rans_sums.span(), members, runs, again));
  TG_CHECK(std::ranges::equal(again, payload), k.name, again.size(), payload.size());
}

// Applies the payload beside a copy of itself.
void check_applied(const Kernels& k, Payload payload, bool taken, std::size_t elements) {
  const Payload payloads[] = {payload, payload};
  AlignedArray<float> from(elements), to(elements);
  TG_CHECK(k.apply_codes({.rate = 1, .scale = 1}, {payloads, {}}, {from.span(), {}, {}}, {to.span(), {}, {}}) == taken,
           k.name);
}

void check_agreement(const Kernels& k, const Decoded& got, const Decoded& want) {
  TG_CHECK(got.codes_taken == want.codes_taken && got.sums_taken == want.sums_taken, k.name);
  if (want.codes_taken) {
    TG_CHECK(std::ranges::equal(got.nonzero, want.nonzero) && std::ranges::equal(got.negative, want.negative), k.name);
    TG_CHECK(std::ranges::equal(got.added, want.added), k.name);
  }
  if (want.sums_taken) TG_CHECK(std::ranges::equal(got.sums, want.sums), k.name);
  TG_CHECK(got.rans_codes_taken == want.rans_codes_taken && got.rans_sums_taken == want.rans_sums_taken, k.name);
  if (want.rans_codes_taken) {
    TG_CHECK(std::ranges::equal(got.rans_nonzero, want.rans_nonzero), k.name);
    TG_CHECK(std::ranges::equal(got.rans_negative, want.rans_negative), k.name);
  }
  if (want.rans_sums_taken) TG_CHECK(std::ranges::equal(got.rans_sums, want.rans_sums), k.name);
}

Decoded check(const Kernels& k, Payload payload, int members, std::size_t elements, Runs runs) {
  Decoded decoded(elements);
  check_codes(k, payload, decoded);
  check_sums(k, payload, members, decoded);
  check_applied(k, payload, decoded.codes_taken, elements);
  check_rans_codes(k, payload, runs, decoded);
  check_rans_sums(k, payload, members, runs, decoded);
  return decoded;
}

void check_all(Payload payload, int members, std::size_t elements, Runs runs) {
  const Kernels& scalar = *available().back();
  const Decoded want = check(scalar, payload, members, elements, runs);
  for (const Kernels* const k : available()) {
    if (k != &scalar) check_agreement(*k, check(*k, payload, members, elements, runs), want);
  }
}

// Byte 1 of the input.
std::vector<std::size_t> runs_of(unsigned size) {
  constexpr unsigned kMiddle = 5, kLarge = 6;
  size %= kLarge + 1;
  if (size == kMiddle) return {16 * kBlock, kBlock};
  if (size == kLarge) return {96 * 1024, 32 * 1024 + kBlock};
  std::vector<std::size_t> runs(size, kBlock);
  if (runs.size() > 1) {
    runs.pop_back();
    runs.back() = 2 * kBlock;
  }
  return runs;
}

}  // namespace
}  // namespace tg::kernels

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int members = 1 + data[0] % tg::kernels::kMaxMembers;
  const std::vector<std::size_t> runs = tg::kernels::runs_of(data[1]);
  const std::size_t elements = std::accumulate(runs.begin(), runs.end(), std::size_t{0});
  tg::kernels::check_all(std::as_bytes(std::span(data + 2, size - 2)), members, elements, runs);
  return 0;
}

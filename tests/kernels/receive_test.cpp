// Codes from all members applied in one pass: the result of adding them up and applying the sums.
#include <cmath>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

// Owns what a Received points to.
struct Members {
  Members(std::size_t elements, std::size_t payload_count, std::size_t plane_count, double share) : sums(elements) {
    for (std::size_t m = 0; m < payload_count + plane_count; ++m) {
      const PlaneArrays& member = codes.emplace_back(random_codes(elements, m + 1, share));
      scalar_variant().accumulate_planes(member.view(), sums.span());
      if (m >= payload_count) continue;
      std::vector<std::byte> payload(codes_bound(elements));
      payload.resize(scalar_variant().encode_codes(member.view(), payload));
      payloads.push_back(std::move(payload));
    }
    for (const auto& payload : payloads) payload_spans.emplace_back(payload);
    for (std::size_t m = payload_count; m < codes.size(); ++m) planes.push_back(codes[m].view());
  }
  Received received() const { return {payload_spans, planes}; }

  AlignedArray<std::int8_t> sums;
  std::vector<PlaneArrays> codes;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<std::span<const std::byte>> payload_spans;
  std::vector<ConstPlanes> planes;
};

Update update_of(OptimizerKind kind, bool past_caches) {
  Update update = sample_update(kind, past_caches ? 0 : 5e-4F);
  update.past_caches = past_caches;
  return update;
}

class ReceiveTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(ReceiveTest);

TEST_P(ReceiveTest, EqualsApplyingTheSums) {
  for (const std::size_t elements : kLengths) {
    State from(elements);
    from.parameters = gaussian(elements, 21, 0.1F);
    from.slot0 = gaussian(elements, 22, 0.01F);
    for (float& v : from.slot1 = gaussian(elements, 23, 0.001F)) v = std::fabs(v);
    for (const double share : {0.0, 0.3, 0.95, 1.0}) {
      for (const auto& [payload_count, plane_count] :
           {std::pair<std::size_t, std::size_t>{0, 0}, {1, 0}, {7, 1}, {0, 8}, {2, 3}, {100, 27}}) {
        if (payload_count == 100 && elements > 1024) continue;
        const Members members(elements, payload_count, plane_count, share);
        for (const OptimizerKind kind : values_of<OptimizerKind>()) {
          const Update update = update_of(kind, plane_count % 2 == 1);
          State got(elements), want(elements);
          ASSERT_TRUE(kernels().apply_codes(update, members.received(), from.view(), got.span()));
          scalar_variant().apply_sums(update, members.sums.span(), from.view(), want.span());
          ASSERT_TRUE(same_bytes(got, want)) << elements << " elements, " << payload_count << " + " << plane_count;
        }
      }
    }
  }
}

TEST_P(ReceiveTest, RefusesTheSameBytesAsTheDecoder) {
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 random(seed);
  constexpr std::size_t kElements = 1024;
  const State from(kElements);
  State to(kElements);
  for (int round = 0; round < 1500; ++round) {
    Members members(kElements, 3, 1, static_cast<double>(random() % 101) / 100);
    std::vector<std::byte>& odd = members.payloads[random() % 3];
    for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
      odd[random() % odd.size()] ^= static_cast<std::byte>(1U << random() % 8);
    }
    if (random() % 4 == 0) odd.resize(random() % (odd.size() + 9), static_cast<std::byte>(random()));
    PlaneArrays decoded(kElements);
    const bool taken = scalar_variant().decode_codes(odd, decoded.planes());
    std::ranges::copy(members.payloads, members.payload_spans.begin());
    ASSERT_EQ(
        kernels().apply_codes(update_of(OptimizerKind::kMomentum, false), members.received(), from.view(), to.span()),
        taken);
  }
}

}  // namespace
}  // namespace tg::kernels::test

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

std::vector<std::byte> encoded(const Kernels& kernels, const AlignedArray<std::int8_t>& sums, int members) {
  std::vector<std::byte> payload(sums_bound(sums.size(), members));
  payload.resize(kernels.encode_sums(sums.span(), members, payload));
  return payload;
}

// Sums of `members` codes that are nonzero with the given share: a random walk, so that all levels get rarer.
AlignedArray<std::int8_t> random_sums(std::size_t elements, int members, std::uint64_t seed, double share) {
  std::mt19937_64 random(seed);
  std::binomial_distribution<int> nonzero(members, share);
  AlignedArray<std::int8_t> sums(elements);
  for (std::int8_t& sum : sums) {
    const int count = nonzero(random);
    sum = static_cast<std::int8_t>(2 * std::binomial_distribution<int>(count, 0.5)(random) - count);
  }
  return sums;
}

class SumsTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(SumsTest);

TEST_P(SumsTest, EncodeTheDocumentedBytes) {
  AlignedArray<std::int8_t> sums(512);
  sums[0] = 1;
  sums[1] = -2;
  sums[2] = 3;
  sums[511] = -1;
  std::vector<std::byte> want(67);
  want[0] = std::byte{0b111};
  want[63] = std::byte{0x80};
  want[64] = std::byte{0b1010};  // signs of 0, 1, 2, 511
  want[65] = std::byte{0b0110};  // the same four: > 1
  want[66] = std::byte{0b10};    // 2 and 511: > 2
  EXPECT_EQ(encoded(kernels(), sums, 3), want);
  want.push_back(std::byte{0});  // with a fourth member: 2 may be > 3, and is not
  EXPECT_EQ(encoded(kernels(), sums, 4), want);
}

TEST_P(SumsTest, ASingleMembersAreItsCodes) {
  const PlaneArrays codes = random_codes(1536, 4, 0.4);
  AlignedArray<std::int8_t> sums(1536);
  kernels().accumulate_planes(codes.view(), sums.span());
  std::vector<std::byte> payload(codes_bound(1536));
  payload.resize(kernels().encode_codes(codes.view(), payload));
  EXPECT_EQ(encoded(kernels(), sums, 1), payload);
}

TEST_P(SumsTest, ComeBackForEveryNumberOfMembers) {
  for (int members = 1; members <= kMaxMembers; ++members) {
    const std::size_t elements = kLengths[static_cast<std::size_t>(members) % 6];
    const auto sums = random_sums(elements, members, static_cast<std::uint64_t>(members), 0.5);
    const auto payload = encoded(kernels(), sums, members);
    EXPECT_EQ(payload, encoded(scalar_variant(), sums, members)) << members;
    AlignedArray<std::int8_t> decoded(elements);
    ASSERT_TRUE(kernels().decode_sums(payload, members, decoded.span())) << members;
    EXPECT_TRUE(same_bytes(sums, decoded)) << members;
  }
}

TEST_P(SumsTest, ComeBackAtTheExtremes) {
  for (const int members : {1, 2, 3, 8, kMaxMembers}) {
    for (const int sign : {-1, 1}) {
      AlignedArray<std::int8_t> sums(1536);
      for (std::int8_t& sum : sums) sum = static_cast<std::int8_t>(sign * members);
      const auto payload = encoded(kernels(), sums, members);
      EXPECT_EQ(payload.size() + kPayloadSlack, sums_bound(1536, members));
      AlignedArray<std::int8_t> decoded(1536);
      ASSERT_TRUE(kernels().decode_sums(payload, members, decoded.span()));
      EXPECT_TRUE(same_bytes(sums, decoded)) << members;
    }
  }
  AlignedArray<std::int8_t> zeros(1024), decoded(1024);
  EXPECT_EQ(encoded(kernels(), zeros, 8).size(), 128U);
  ASSERT_TRUE(kernels().decode_sums(encoded(kernels(), zeros, 8), 8, decoded.span()));
  EXPECT_TRUE(same_bytes(zeros, decoded));
}

TEST_P(SumsTest, RefuseWrongLengths) {
  const auto sums = random_sums(1024, 5, 3, 0.6);
  const auto payload = encoded(kernels(), sums, 5);
  AlignedArray<std::int8_t> decoded(1024);
  for (std::size_t bytes = 0; bytes < payload.size(); ++bytes) {
    EXPECT_FALSE(kernels().decode_sums(std::span(payload).first(bytes), 5, decoded.span())) << bytes;
  }
  auto longer = payload;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(kernels().decode_sums(longer, 5, decoded.span()));
  EXPECT_FALSE(kernels().decode_sums(payload, 4, decoded.span())) << "a plane more than four members have";
}

TEST_P(SumsTest, RefusePaddingThatIsNotZero) {
  AlignedArray<std::int8_t> sums(512);
  sums[5] = 2;
  sums[6] = -1;
  sums[7] = 1;
  const auto payload = encoded(kernels(), sums, 3);  // signs, > 1 (three bits), > 2 (one bit)
  ASSERT_EQ(payload.size(), 67U);
  AlignedArray<std::int8_t> decoded(512);
  ASSERT_TRUE(kernels().decode_sums(payload, 3, decoded.span()));
  const std::size_t bits[] = {3, 3, 1};
  for (std::size_t plane = 0; plane < 3; ++plane) {
    for (std::size_t bit = bits[plane]; bit < 8; ++bit) {
      auto odd = payload;
      odd[64 + plane] |= static_cast<std::byte>(1U << bit);
      EXPECT_FALSE(kernels().decode_sums(odd, 3, decoded.span())) << "plane " << plane << " bit " << bit;
    }
  }
}

// Whatever the bytes: the scalar variant's verdict, nothing outside the span, |sums| within the members, and what is
// taken encodes to the same bytes.
TEST_P(SumsTest, StayInBoundsUnderMutation) {
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 random(seed);
  constexpr std::size_t kElements = 1024, kGuard = 64;
  constexpr std::int8_t kCanary = 0x5A;
  for (int round = 0; round < 2000; ++round) {
    const int members = 1 + static_cast<int>(random() % 9);
    auto bytes = encoded(kernels(), random_sums(kElements, members, random(), 0.4), members);
    for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 9), static_cast<std::byte>(random()));
    AlignedArray<std::int8_t> memory(kElements + 2 * kGuard), want(kElements);
    for (std::int8_t& byte : memory) byte = kCanary;
    const auto sums = memory.span().subspan(kGuard, kElements);
    const bool taken = kernels().decode_sums(bytes, members, sums);
    ASSERT_EQ(taken, scalar_variant().decode_sums(bytes, members, want.span()));
    for (std::size_t g = 0; g < kGuard; ++g) {
      ASSERT_EQ(memory[g], kCanary);
      ASSERT_EQ(memory[kGuard + kElements + g], kCanary);
    }
    if (!taken) continue;
    ASSERT_TRUE(same_bytes<std::int8_t>(sums, want.span()));
    for (const std::int8_t sum : want) ASSERT_LE(std::abs(sum), members);
    ASSERT_EQ(encoded(kernels(), want, members), bytes);
  }
}

}  // namespace
}  // namespace tg::kernels::test

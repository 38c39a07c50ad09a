#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

constexpr double kShares[] = {0.0, 0.01, 0.32, 0.9, 1.0};

std::vector<std::byte> encoded(const Kernels& kernels, const PlaneArrays& codes) {
  std::vector<std::byte> payload(codes_bound(codes.nonzero.size() * kWordBits));
  payload.resize(kernels.encode_codes(codes.view(), payload));
  return payload;
}

class CodesTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(CodesTest);

TEST_P(CodesTest, EncodeTheDocumentedBytes) {
  PlaneArrays codes(512);
  codes.nonzero[0] = 0x8000000000000003;  // elements 0, 1, 63: +, -, -
  codes.negative[0] = 0x8000000000000002;
  codes.nonzero[1] = 1;  // element 64: +
  std::vector<std::byte> want(65);
  want[0] = std::byte{0x03};
  want[7] = std::byte{0x80};
  want[8] = std::byte{0x01};
  want[64] = std::byte{0b0110};
  EXPECT_EQ(encoded(kernels(), codes), want);
}

TEST_P(CodesTest, EncodeTheScalarBytes) {
  for (const std::size_t elements : kLengths) {
    for (const double share : kShares) {
      const PlaneArrays codes = random_codes(elements, elements + 1, share);
      EXPECT_EQ(encoded(kernels(), codes), encoded(scalar_variant(), codes)) << elements << " at " << share;
    }
  }
}

TEST_P(CodesTest, ComeBackFromAnyAddress) {
  for (const std::size_t elements : kLengths) {
    for (const double share : kShares) {
      const PlaneArrays codes = random_codes(elements, elements + 2, share);
      const auto payload = encoded(kernels(), codes);
      for (const std::size_t shift : {0, 1, 7}) {
        std::vector<std::byte> moved(shift);
        moved.insert(moved.end(), payload.begin(), payload.end());
        PlaneArrays decoded(elements);
        ASSERT_TRUE(kernels().decode_codes(std::span(moved).subspan(shift), decoded.planes()));
        EXPECT_TRUE(same_bytes(codes, decoded)) << elements << " at " << share;
      }
    }
  }
}

TEST_P(CodesTest, AreCounted) {
  for (const std::size_t elements : kLengths) {
    for (const double share : kShares) {
      const PlaneArrays codes = random_codes(elements, elements + 3, share);
      std::uint64_t ones = 0;
      for (const std::uint64_t word : codes.nonzero)
        for (std::size_t bit = 0; bit < kWordBits; ++bit) ones += word >> bit & 1;
      EXPECT_EQ(kernels().count(codes.view().nonzero), ones) << elements << " at " << share;
    }
  }
}

TEST_P(CodesTest, AccumulateToTheSameSums) {
  for (const std::size_t elements : kLengths) {
    AlignedArray<std::int8_t> from_payload(elements), from_planes(elements), want(elements);
    for (std::uint64_t member = 0; member < 9; ++member) {
      const PlaneArrays codes = random_codes(elements, member, 0.7);
      ASSERT_TRUE(kernels().accumulate_codes(encoded(kernels(), codes), from_payload.span()));
      kernels().accumulate_planes(codes.view(), from_planes.span());
      for (std::size_t i = 0; i < elements; ++i) want[i] = static_cast<std::int8_t>(want[i] + codes.code(i));
    }
    EXPECT_TRUE(same_bytes(from_payload, want)) << elements;
    EXPECT_TRUE(same_bytes(from_planes, want)) << elements;
  }
}

TEST_P(CodesTest, AddTheScaleWhereTheyAreNotZero) {
  for (const float scale : {0.3F, -2.5e-4F}) {
    for (const double share : kShares) {
      const PlaneArrays codes = random_codes(512 * 5, 8, share);
      AlignedArray<float> total = gaussian(512 * 5, 2), want = gaussian(512 * 5, 2);
      total[7] = want[7] = -0.0F;
      kernels().accumulate_scaled(codes.view(), scale, total.span());
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (codes.code(i) != 0) want[i] = want[i] + static_cast<float>(codes.code(i)) * scale;
      }
      EXPECT_TRUE(same_bytes(total, want)) << share;
    }
  }
}

TEST_P(CodesTest, SumsReachTheMostMembers) {
  const PlaneArrays codes = random_codes(512, 1, 1.0);
  AlignedArray<std::int8_t> sums(512);
  for (int member = 0; member < kMaxMembers; ++member) kernels().accumulate_planes(codes.view(), sums.span());
  for (std::size_t i = 0; i < 512; ++i) EXPECT_EQ(sums[i], codes.code(i) * kMaxMembers);
}

TEST_P(CodesTest, RefuseWrongLengths) {
  const PlaneArrays codes = random_codes(1024, 5, 0.3);
  const auto payload = encoded(kernels(), codes);
  PlaneArrays decoded(1024);
  AlignedArray<std::int8_t> sums(1024), untouched(1024);
  for (std::size_t bytes = 0; bytes < payload.size(); ++bytes) {
    EXPECT_FALSE(kernels().decode_codes(std::span(payload).first(bytes), decoded.planes())) << bytes;
    EXPECT_FALSE(kernels().accumulate_codes(std::span(payload).first(bytes), sums.span())) << bytes;
  }
  auto longer = payload;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(kernels().decode_codes(longer, decoded.planes()));
  EXPECT_FALSE(kernels().accumulate_codes(longer, sums.span()));
  EXPECT_TRUE(same_bytes(sums, untouched));
  EXPECT_FALSE(kernels().decode_codes(payload, PlaneArrays(0).planes()));
  EXPECT_TRUE(kernels().decode_codes({}, PlaneArrays(0).planes()));
}

TEST_P(CodesTest, RefusePaddingThatIsNotZero) {
  PlaneArrays codes(512);
  codes.nonzero[3] = 0x1F;  // five signs, three bits of padding
  codes.negative[3] = 0x15;
  const auto payload = encoded(kernels(), codes);
  AlignedArray<std::int8_t> sums(512);
  PlaneArrays decoded(512);
  EXPECT_TRUE(kernels().decode_codes(payload, decoded.planes()));
  for (const unsigned bit : {5U, 6U, 7U}) {
    auto odd = payload;
    odd.back() |= static_cast<std::byte>(1U << bit);
    EXPECT_FALSE(kernels().decode_codes(odd, decoded.planes()));
    EXPECT_FALSE(kernels().accumulate_codes(odd, sums.span()));
  }
}

// Whatever the bytes: the scalar variant's verdict, nothing outside the spans, and what is taken encodes to the same
// bytes.
TEST_P(CodesTest, StayInBoundsUnderMutation) {
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 random(seed);
  constexpr std::size_t kElements = 1024, kGuard = 8;  // words
  constexpr std::uint64_t kCanary = 0xA5A5A5A5A5A5A5A5;
  for (int round = 0; round < 3000; ++round) {
    auto bytes = encoded(kernels(), random_codes(kElements, random(), static_cast<double>(random() % 100) / 100));
    for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
    }
    if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 9), static_cast<std::byte>(random()));
    AlignedArray<std::uint64_t> memory(2 * kElements / kWordBits + 3 * kGuard);
    for (std::uint64_t& word : memory) word = kCanary;
    const std::size_t words = kElements / kWordBits;
    const Planes planes{memory.span().subspan(kGuard, words), memory.span().subspan(2 * kGuard + words, words)};
    PlaneArrays want(kElements);
    const bool taken = kernels().decode_codes(bytes, planes);
    ASSERT_EQ(taken, scalar_variant().decode_codes(bytes, want.planes()));
    for (std::size_t g = 0; g < kGuard; ++g) {
      ASSERT_EQ(memory[g], kCanary);
      ASSERT_EQ(memory[kGuard + words + g], kCanary);
      ASSERT_EQ(memory[2 * kGuard + 2 * words + g], kCanary);
    }
    AlignedArray<std::int8_t> sums(kElements), other(kElements);
    ASSERT_EQ(kernels().accumulate_codes(bytes, sums.span()), taken);
    ASSERT_EQ(scalar_variant().accumulate_codes(bytes, other.span()), taken);
    ASSERT_TRUE(same_bytes(sums, other));
    if (taken) {
      ASSERT_TRUE(same_bytes<std::uint64_t>(planes.nonzero, want.nonzero.span()));
      ASSERT_TRUE(same_bytes<std::uint64_t>(planes.negative, want.negative.span()));
      ASSERT_EQ(encoded(kernels(), want), bytes);
    }
  }
}

}  // namespace
}  // namespace tg::kernels::test

#include <set>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

constexpr std::uint64_t kDigestSalt = 0x243F6A8885A308D3;

class DigestTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(DigestTest);

TEST_P(DigestTest, EqualsTheScalarOne) {
  for (const std::size_t elements : kLengths) {
    const auto values = gaussian(elements, elements);
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{512}, std::uint64_t{0xFFFFFE00}, ~std::uint64_t{0} - 511}) {
      EXPECT_EQ(kernels().digest(values.span(), first, kDigestSalt),
                scalar_variant().digest(values.span(), first, kDigestSalt));
    }
  }
}

TEST_P(DigestTest, IsTheSumOfItsParts) {
  const auto values = gaussian(512 * 9, 1);
  const auto part = [&](std::size_t first, std::size_t count) {
    return kernels().digest(values.span().subspan(first, count), first, kDigestSalt);
  };
  EXPECT_EQ(part(0, 512 * 9), part(512 * 4, 512 * 5) + part(512, 512 * 3) + part(0, 512));
}

TEST_P(DigestTest, SeesEveryFlippedBit) {
  auto values = gaussian(512, 2);
  std::set<std::uint64_t> seen = {kernels().digest(values.span(), 4096, kDigestSalt)};
  for (std::size_t i = 0; i < 512; ++i) {
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const float kept = values[i];
      values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(kept) ^ 1U << bit);
      seen.insert(kernels().digest(values.span(), 4096, kDigestSalt));
      values[i] = kept;
    }
  }
  EXPECT_EQ(seen.size(), 1U + 512 * 32) << "two states with one flipped bit each have the same digest";
}

TEST_P(DigestTest, SeesSwapsShiftsSaltAndLength) {
  auto values = gaussian(1024, 3);
  const std::uint64_t whole = kernels().digest(values.span(), 0, kDigestSalt);
  std::swap(values[0], values[1]);
  EXPECT_NE(kernels().digest(values.span(), 0, kDigestSalt), whole);
  std::swap(values[0], values[1]);
  std::swap(values[3], values[1000]);
  EXPECT_NE(kernels().digest(values.span(), 0, kDigestSalt), whole);
  std::swap(values[3], values[1000]);
  EXPECT_EQ(kernels().digest(values.span(), 0, kDigestSalt), whole);
  EXPECT_NE(kernels().digest(values.span(), 512, kDigestSalt), whole);
  EXPECT_NE(kernels().digest(values.span(), 0, kDigestSalt + 1), whole);
  EXPECT_NE(kernels().digest(values.span(), 0, kDigestSalt ^ std::uint64_t{1} << 63), whole);
  const AlignedArray<float> zeros(1024);
  EXPECT_NE(kernels().digest(zeros.span(), 0, kDigestSalt), kernels().digest(zeros.span().first(512), 0, kDigestSalt));
}

// Both values of a pair moved by the same or opposite amounts: what a plain sum of bits would miss.
TEST_P(DigestTest, SeesChangesThatAPlainSumWouldMiss) {
  auto values = gaussian(512, 4);
  const std::uint64_t whole = kernels().digest(values.span(), 0, kDigestSalt);
  for (std::size_t i = 0; i + 1 < 512; ++i) {
    const float a = values[i], b = values[i + 1];
    values[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) + 1);
    values[i + 1] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(b) - 1);
    ASSERT_NE(kernels().digest(values.span(), 0, kDigestSalt), whole) << i;
    values[i] = a;
    values[i + 1] = b;
  }
}

// Digests are compared between nodes and stored in checkpoints: frozen.
TEST_P(DigestTest, GivesTheFrozenValue) {
  AlignedArray<float> values(512);
  for (std::size_t i = 0; i < 512; ++i) values[i] = static_cast<float>(i) - 100;
  EXPECT_EQ(kernels().digest(values.span(), 1536, 7), 0xC815196CF213D4A9U);
}

}  // namespace
}  // namespace tg::kernels::test

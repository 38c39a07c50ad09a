#include <cmath>
#include <limits>

#include "tests/kernels/model.h"
#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

constexpr DrawKey kKey{.seed = 0xC0FFEE0123456789, .seat = 5, .segment = 77, .step = 123456};

class TernarizeTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(TernarizeTest);

TEST_P(TernarizeTest, EqualsTheModelBitForBit) {
  for (const std::size_t elements : kLengths) {
    for (const float clip : {kInfinity, 2.5F, 0.7F}) {
      for (const std::size_t first : {std::size_t{0}, std::size_t{512 * 3}, std::size_t{512} * 9000000}) {
        const auto gradient = gaussian(elements, elements + 3, 1, elements / 5);
        const Scale scale{.clip = clip, .scaler = std::min(clip, 3.0F)};
        PlaneArrays got(elements), want(elements);
        kernels().ternarize(gradient.span(), first, kKey, scale, got.planes());
        model_ternarize(gradient.span(), first, kKey, scale, want.planes(), Mistake::kNone);
        ASSERT_TRUE(same_bytes(got, want)) << elements << " elements from " << first << ", clip " << clip;
      }
    }
  }
}

TEST_P(TernarizeTest, EqualsTheModelOverAllExponents) {
  std::mt19937_64 random(11);
  AlignedArray<float> gradient(512 * 64);
  for (float& g : gradient) {
    do {
      g = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    } while (!std::isfinite(g));
  }
  for (const float scaler : {kSmallestScaler, 1e-20F, 0.3F, 1e20F, std::numeric_limits<float>::max()}) {
    for (const float clip : {kInfinity, scaler}) {
      PlaneArrays got(gradient.size()), want(gradient.size());
      kernels().ternarize(gradient.span(), 0, kKey, {clip, scaler}, got.planes());
      model_ternarize(gradient.span(), 0, kKey, {clip, scaler}, want.planes(), Mistake::kNone);
      ASSERT_TRUE(same_bytes(got, want)) << "scaler " << scaler << ", clip " << clip;
    }
  }
}

TEST_P(TernarizeTest, APartEqualsThePartOfTheWhole) {
  const auto gradient = gaussian(512 * 11, 5);
  PlaneArrays whole(gradient.size());
  kernels().ternarize(gradient.span(), 0, kKey, {2.5F, 2.5F}, whole.planes());
  for (std::size_t block = 0; block < 11; ++block) {
    PlaneArrays part(512);
    kernels().ternarize(gradient.span().subspan(512 * block, 512), 512 * block, kKey, {2.5F, 2.5F}, part.planes());
    EXPECT_TRUE(same_bytes<std::uint64_t>(part.nonzero.span(), whole.nonzero.span().subspan(8 * block, 8))) << block;
    EXPECT_TRUE(same_bytes<std::uint64_t>(part.negative.span(), whole.negative.span().subspan(8 * block, 8))) << block;
  }
}

TEST_P(TernarizeTest, DrawsOtherCodesForEveryKeyWord) {
  AlignedArray<float> gradient(512);
  for (float& g : gradient) g = 0.5F;
  PlaneArrays base(512);
  kernels().ternarize(gradient.span(), 0, kKey, {1, 1}, base.planes());
  DrawKey seed = kKey, seat = kKey, segment = kKey, step = kKey;
  seed.seed ^= std::uint64_t{1} << 40;
  ++seat.seat;
  ++segment.segment;
  ++step.step;
  for (const DrawKey& key : {seed, seat, segment, step}) {
    PlaneArrays other(512);
    kernels().ternarize(gradient.span(), 0, key, {1, 1}, other.planes());
    int differing = 0;
    for (std::size_t w = 0; w < 8; ++w) differing += std::popcount(base.nonzero[w] ^ other.nonzero[w]);
    EXPECT_GT(differing, 180);  // 256 expected, standard deviation 11
    EXPECT_LT(differing, 330);
  }
}

TEST_P(TernarizeTest, LeavesPaddingZeroAndKeepsSigns) {
  const auto gradient = gaussian(1536, 9, 1, 300);
  PlaneArrays codes(1536);
  kernels().ternarize(gradient.span(), 0, kKey, {0.01F, 0.01F}, codes.planes());
  int nonzero = 0;
  for (std::size_t i = 0; i < 1536; ++i) {
    if (codes.code(i) == 0) continue;
    ++nonzero;
    EXPECT_EQ(codes.code(i) < 0, gradient[i] < 0) << i;
  }
  EXPECT_GT(nonzero, 1200);
  for (std::size_t i = 1536 - 300; i < 1536; ++i) EXPECT_EQ(codes.code(i), 0) << i;
}

TEST_P(TernarizeTest, GivesZerosBelowTheSmallestScaler) {
  const auto gradient = gaussian(1024, 9);
  for (const float scaler : {0.0F, std::nextafter(kSmallestScaler, 0.0F)}) {
    PlaneArrays codes(1024), zeros(1024);
    for (std::uint64_t& word : codes.nonzero) word = ~std::uint64_t{0};
    for (std::uint64_t& word : codes.negative) word = ~std::uint64_t{0};
    kernels().ternarize(gradient.span(), 0, kKey, {kInfinity, scaler}, codes.planes());
    EXPECT_TRUE(same_bytes(codes, zeros));
  }
}

// The codes of one segment at one seed, frozen: a change here changes every run's history.
TEST_P(TernarizeTest, GivesTheFrozenCodes) {
  AlignedArray<float> gradient(512);
  for (std::size_t i = 0; i < 512; ++i) gradient[i] = static_cast<float>(static_cast<int>(i) - 256) / 256;
  PlaneArrays codes(512);
  kernels().ternarize(gradient.span(), 1024, {.seed = 42, .seat = 1, .segment = 2, .step = 3}, {1, 1}, codes.planes());
  constexpr std::array<std::uint64_t, 8> kNonzero = {0x89EAF77FEFF8FFFF, 0xAB01EF39BD7BBE19, 0x1880247E0381F27A,
                                                     0x0000860008148105, 0x2080043050081400, 0x5F2BB90A1C063B01,
                                                     0xEFADFFBC4E8D9ABA, 0xFFEFFFFEFDDEB9FD};
  for (std::size_t w = 0; w < 8; ++w) {
    EXPECT_EQ(codes.nonzero[w], kNonzero[w]) << w;
    EXPECT_EQ(codes.negative[w], w < 4 ? kNonzero[w] : 0) << w;
  }
}

}  // namespace
}  // namespace tg::kernels::test

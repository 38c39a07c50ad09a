#include "engine/cuda/operators/bodies/divider.h"

#include <gtest/gtest.h>

#include <random>

namespace tg::engine::cuda::bodies {
namespace {

void expect_parts(std::uint64_t dividend, std::uint64_t divisor) {
  const Divider by(divisor);
  const Divider::Parts parts = by(dividend);
  ASSERT_EQ(parts.quotient, dividend / divisor) << dividend << " / " << divisor;
  ASSERT_EQ(parts.remainder, dividend % divisor) << dividend << " / " << divisor;
  if (dividend >> 31 != 0) return;
  const Divider::Parts small = by.of_small(static_cast<std::uint32_t>(dividend));
  ASSERT_EQ(small.quotient, dividend / divisor) << dividend << " / " << divisor;
  ASSERT_EQ(small.remainder, dividend % divisor) << dividend << " / " << divisor;
}

TEST(Divider, DividesAtEveryEdge) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << 31;
  std::vector<std::uint64_t> divisors{kEnd - 1, kEnd - 2, kEnd / 2, kEnd / 2 + 1, kEnd / 2 - 1, 12'544, 802'816};
  for (std::uint64_t divisor = 1; divisor < 300; ++divisor) divisors.push_back(divisor);
  std::mt19937_64 random(9);
  for (int i = 0; i < 300; ++i) divisors.push_back((random() >> (34 + i % 28)) + 1);  // below 2^30
  for (const std::uint64_t divisor : divisors) {
    for (const std::uint64_t dividend : {std::uint64_t{0}, divisor - 1, divisor, kEnd - 1, kEnd, kEnd + 1, 2 * kEnd - 1,
                                         2 * kEnd, (kEnd - 1) / divisor * divisor, (kEnd << 20) + 12'345})
      expect_parts(dividend, divisor);
    for (int i = 0; i < 200; ++i) {
      const std::uint64_t quotient = (random() >> 33) / divisor;
      expect_parts(quotient * divisor, divisor);
      if (quotient > 0) expect_parts(quotient * divisor - 1, divisor);
    }
  }
}

}  // namespace
}  // namespace tg::engine::cuda::bodies

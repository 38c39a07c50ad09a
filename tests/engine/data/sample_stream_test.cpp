#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/data/draws.h"
#include "engine/dataset.h"

namespace tg::engine {
namespace {

std::vector<std::size_t> take(SampleStream& stream, std::uint64_t first, std::size_t count) {
  std::vector<std::size_t> samples;
  for (std::size_t i = 0; i < count; ++i) samples.push_back(stream.sample(first + i));
  return samples;
}

TEST(SampleStream, EveryEpochIsAPermutationAndEpochsDiffer) {
  for (const std::size_t count : {1u, 2u, 3u, 64u, 1000u}) {
    SampleStream stream(7, count);
    std::set<std::vector<std::size_t>> epochs;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      const auto samples = take(stream, epoch * count, count);
      EXPECT_EQ(std::set<std::size_t>(samples.begin(), samples.end()).size(), count);
      EXPECT_LT(*std::ranges::max_element(samples), count);
      epochs.insert(samples);
    }
    if (count >= 64) {
      EXPECT_EQ(epochs.size(), 4u);
    }
  }
}

TEST(SampleStream, DependsOnSeedAndPositionAlone) {
  SampleStream forward(3, 100), other(4, 100);
  const auto samples = take(forward, 0, 1000);
  EXPECT_NE(samples, take(other, 0, 1000));
  SampleStream backward(3, 100);
  for (std::uint64_t position = 1000; position-- > 0;) EXPECT_EQ(backward.sample(position), samples[position]);
  SampleStream far(3, 100);
  EXPECT_LT(far.sample(UINT64_MAX), 100u);
}

TEST(SampleStream, GoldenOrder) {
  SampleStream stream(1, 10);
  EXPECT_EQ(take(stream, 0, 10), (std::vector<std::size_t>{7, 2, 3, 1, 0, 9, 4, 5, 8, 6}));
  EXPECT_EQ(take(stream, 10, 10), (std::vector<std::size_t>{9, 0, 1, 3, 6, 5, 2, 4, 8, 7}));
}

// Each of n samples is equally likely in each place: 3 deviations of a binomial, over 100 cells with a fixed seed.
TEST(SampleStream, PlacesAreUniform) {
  constexpr int kEpochs = 10'000;
  int counts[10][10] = {};
  SampleStream stream(5, 10);
  for (std::uint64_t position = 0; position < 10 * kEpochs; ++position) {
    ++counts[position % 10][stream.sample(position)];
  }
  double chi_squared = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi_squared += (count - kEpochs / 10.0) * (count - kEpochs / 10.0) / (kEpochs / 10.0);
  }
  EXPECT_LT(chi_squared, 81 + 4 * 12.7);  // 81 degrees of freedom: mean 81, deviation 12.7
}

TEST(Draws, BelowHasNoModuloBias) {
  // Two thirds of 2^32: taken modulo, values of the lower half would come twice as often.
  constexpr std::uint32_t kBound = 0xaaaaaaabu;
  Draws draws(11, DrawDomain::kShuffle, 0);
  int low = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) low += draws.below(kBound) < kBound / 2 ? 1 : 0;
  EXPECT_NEAR(low, kDraws / 2, 4 * 71);  // deviation sqrt(20000)/2 = 71; biased it would be 13,333
}

TEST(Draws, DomainsAndIndexesDiffer) {
  std::set<std::uint32_t> words;
  for (const auto domain :
       {DrawDomain::kShuffle, DrawDomain::kAugment, DrawDomain::kDigitsTrain, DrawDomain::kDigitsTest}) {
    for (const std::uint64_t index : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
      words.insert(Draws(1, domain, index).word());
    }
  }
  EXPECT_EQ(words.size(), 12u);
}

}  // namespace
}  // namespace tg::engine

// The draw has the right mean and its errors are independent, and the checks that say so reject each of the four
// mistakes that are easy to make: no dither, s for s', a dither that members share, no clamp at 255.
#include <cmath>
#include <functional>

#include "tests/kernels/model.h"
#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

// Draws the codes of a gradient under a key; a kernel, or the model with a mistake.
using Draw = std::function<void(std::span<const float>, const DrawKey&, const Scale&, Planes)>;

Draw draw_of(const Kernels& kernels) {
  return [&kernels](std::span<const float> gradient, const DrawKey& key, const Scale& scale, Planes codes) {
    kernels.ternarize(gradient, 0, key, scale, codes);
  };
}

Draw draw_with(Mistake mistake) {
  return [mistake](std::span<const float> gradient, const DrawKey& key, const Scale& scale, Planes codes) {
    model_ternarize(gradient, 0, key, scale, codes, mistake);
  };
}

const Kernels& best() { return *available().front(); }

constexpr std::size_t kMagnitudes = 2560;
constexpr int kDraws = 40000;
constexpr float kScaler = 0.37F;
// rms of 2560 independent z has a standard deviation of 1/sqrt(2 * 2560) = 0.014.
constexpr double kMinRms = 0.95, kMaxRms = 1.05;

// Log-spaced from 1e-4 to 1 times the scaler.
AlignedArray<float> magnitudes() {
  AlignedArray<float> values(kMagnitudes);
  for (std::size_t i = 0; i < kMagnitudes; ++i) {
    const double exponent = -4.0 * static_cast<double>(kMagnitudes - 1 - i) / (kMagnitudes - 1);
    values[i] = static_cast<float>(static_cast<double>(kScaler) * std::pow(10.0, exponent));
  }
  return values;
}

// How often each magnitude was sent in kDraws steps.
std::vector<int> counts_of(const Draw& draw) {
  const auto gradient = magnitudes();
  std::vector<int> counts(kMagnitudes);
  PlaneArrays codes(kMagnitudes);
  AlignedArray<std::int8_t> sums(kMagnitudes);
  for (int step = 0; step < kDraws; ++step) {
    const DrawKey key{.seed = 2017, .seat = 1, .segment = 4, .step = static_cast<std::uint32_t>(step)};
    draw(gradient.span(), key, {kScaler, kScaler}, codes.planes());
    best().accumulate_planes(codes.view(), sums.span());
    if (step % kMaxMembers != kMaxMembers - 1 && step != kDraws - 1) continue;
    for (std::size_t i = 0; i < kMagnitudes; ++i) {
      counts[i] += sums[i];
      sums[i] = 0;
    }
  }
  return counts;
}

// z = (mean of the decoded values - the magnitude) in standard errors, its root mean square over all magnitudes.
double rms_z(const std::vector<int>& counts, double applied) {
  const auto gradient = magnitudes();
  double squares = 0;
  for (std::size_t i = 0; i < kMagnitudes; ++i) {
    const double p = static_cast<double>(gradient[i]) / static_cast<double>(applied_scale(kScaler));
    const double error = counts[i] * applied - kDraws * static_cast<double>(gradient[i]);
    const double deviation = applied * std::sqrt(kDraws * p * (1 - p));
    squares += error * error / (deviation * deviation);
  }
  return std::sqrt(squares / kMagnitudes);
}

class UnbiasedTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(UnbiasedTest);

TEST_P(UnbiasedTest, MeansLieAsFarOffAsChanceSays) {
  const double rms = rms_z(counts_of(draw_of(kernels())), static_cast<double>(applied_scale(kScaler)));
  EXPECT_GE(rms, kMinRms);
  EXPECT_LE(rms, kMaxRms);
}

TEST(UnbiasedMistakes, NoDitherIsBiased) {
  EXPECT_GT(rms_z(counts_of(draw_with(Mistake::kNoDither)), static_cast<double>(applied_scale(kScaler))), kMaxRms);
}

TEST(UnbiasedMistakes, ApplyingTheScalerItselfIsBiased) {
  EXPECT_GT(rms_z(counts_of(draw_of(best())), static_cast<double>(kScaler)), kMaxRms);
}

// The largest |E[T]/256 * s' - g| / s over all 2^24 dithers, and the largest T.
struct Exact {
  double bias = 0;
  std::uint32_t largest = 0;
};

Exact over_all_dithers(float g, Mistake mistake) {
  const Scale scale{kScaler, kScaler};
  std::uint64_t total = 0;
  std::uint32_t largest = 0;
  for (std::uint32_t dither = 0; dither < 1U << 24; ++dither) {
    const std::uint32_t t = model_threshold(g, scale, static_cast<float>(dither) * 0x1p-24F, mistake);
    total += t;
    largest = std::max(largest, t);
  }
  const double mean = static_cast<double>(total) * 0x1p-24;
  const double applied = static_cast<double>(applied_scale(kScaler));
  return {std::fabs(mean / 256 * applied - static_cast<double>(g)) / static_cast<double>(kScaler), largest};
}

constexpr double kMaxBias = 0x1p-23;  // times s: the rounding of q, of the fma and of s'

TEST(ExactMean, IsTheMagnitudeOverAllDithers) {
  for (const double share : {0.0, 1e-6, 1e-4, 0.5 / 255, 1.0 / 255, 0.1, 1.0 / 3, 0.77, 254.5 / 255, 1.0}) {
    const Exact exact = over_all_dithers(static_cast<float>(share) * kScaler, Mistake::kNone);
    EXPECT_LE(exact.bias, kMaxBias) << share;
    EXPECT_LE(exact.largest, 255U) << share;
  }
}

TEST(ExactMean, RejectsNoDither) {
  EXPECT_GT(over_all_dithers(0.5F / 255 * kScaler, Mistake::kNoDither).bias, kMaxBias);
}

TEST(ExactMean, RejectsNoClamp) { EXPECT_GT(over_all_dithers(kScaler, Mistake::kNoClamp).largest, 255U); }

// |g| = s under a dither so close to 1 that 255 + d rounds to 256: the code must still be nonzero iff r8 < 255.
// About one dither in 2^17 is such; the search is over steps.
bool sends_the_scaler_at_255(const Draw& draw) {
  constexpr std::uint32_t kSteps = 200000;
  AlignedArray<float> gradient(512);
  for (float& g : gradient) g = kScaler;
  int elements = 0;
  for (std::uint32_t step = 0; step < kSteps; ++step) {
    const DrawKey key{.seed = 99, .seat = 3, .segment = 1, .step = step};
    bool rare[16] = {};
    bool any = false;
    for (std::uint32_t part = 0; part < 4; ++part) {
      const std::uint32_t counter[4] = {part, key.seat, key.segment | 1U << 31, key.step};
      std::uint32_t words[4];
      philox4x32(counter, key.seed, words);
      for (std::uint32_t w = 0; w < 4; ++w) any |= rare[4 * part + w] = words[w] >> 15 == 0x1FFFF;
    }
    if (!any) continue;
    PlaneArrays codes(512);
    draw(gradient.span(), key, {kScaler, kScaler}, codes.planes());
    for (std::size_t i = 0; i < 512; ++i) {
      if (!rare[i % 16]) continue;
      ++elements;
      if ((codes.code(i) != 0) != (model_byte(key, i) < 255)) return false;
    }
  }
  EXPECT_GT(elements, 256) << "too few rare dithers to say anything";
  return true;
}

TEST_P(UnbiasedTest, TheScalerIsSentAt255WhateverTheDither) {
  EXPECT_TRUE(sends_the_scaler_at_255(draw_of(kernels())));
}

TEST(UnbiasedMistakes, NoClampSendsTheScalerTooOften) {
  EXPECT_FALSE(sends_the_scaler_at_255(draw_with(Mistake::kNoClamp)));
}

// Variance of the sum over members of an element's codes, over what independent members give. With threshold T = 0 or 1
// by the dither alone (x = 1/2), a dither that members share makes the covariance of two members (1/256)^2 / 4 and the
// ratio 1 + (N - 1) / 512 / (1 - p) = 1.25.
double variance_ratio(const Draw& draw) {
  constexpr std::size_t kElements = 512 * 400;
  const float g = 0.5F / 255 * kScaler;
  AlignedArray<float> gradient(kElements);
  for (float& value : gradient) value = g;
  AlignedArray<std::int8_t> sums(kElements);
  for (int member = 0; member < kMaxMembers; ++member) {
    PlaneArrays codes(kElements);
    const DrawKey key{.seed = 5, .seat = static_cast<std::uint32_t>(member), .segment = 9, .step = 1};
    draw(gradient.span(), key, {kScaler, kScaler}, codes.planes());
    best().accumulate_planes(codes.view(), sums.span());
  }
  const double p = static_cast<double>(g) / static_cast<double>(applied_scale(kScaler));
  double squares = 0;
  for (const std::int8_t sum : sums) squares += (sum - kMaxMembers * p) * (sum - kMaxMembers * p);
  return squares / kElements / (kMaxMembers * p * (1 - p));
}

constexpr double kMaxExcess = 0.05;  // a standard deviation is 0.005

TEST_P(UnbiasedTest, MembersErrorsAreIndependent) { EXPECT_NEAR(variance_ratio(draw_of(kernels())), 1, kMaxExcess); }

TEST(UnbiasedMistakes, ADitherThatMembersShareAddsVariance) {
  EXPECT_GT(variance_ratio(draw_with(Mistake::kDitherWithoutSeat)), 1 + kMaxExcess);
}

}  // namespace
}  // namespace tg::kernels::test

#include <cmath>
#include <limits>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

State random_state(std::size_t elements) {
  State state(elements);
  state.parameters = gaussian(elements, 21, 0.1F, elements / 9);
  state.slot0 = gaussian(elements, 22, 0.01F, elements / 9);
  state.slot1 = gaussian(elements, 23, 0.001F, elements / 9);
  for (float& v : state.slot1) v = std::fabs(v);
  return state;
}

AlignedArray<std::int8_t> some_sums(std::size_t elements) {
  AlignedArray<std::int8_t> sums(elements);
  for (std::size_t i = 0; i + elements / 9 < elements; ++i) sums[i] = static_cast<std::int8_t>(i * 37 % 255 - 127);
  return sums;
}

class ApplyTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(ApplyTest);

TEST_P(ApplyTest, EqualsTheScalarBitsFromSumsAndFloats) {
  for (const std::size_t elements : kLengths) {
    const State from = random_state(elements);
    const auto sums = some_sums(elements);
    const auto floats = gaussian(elements, 31);
    for (const OptimizerKind kind : values_of<OptimizerKind>()) {
      for (const float decay : {0.0F, 5e-4F}) {
        State got(elements), want(elements);
        const auto same_states = [&] { return same_bytes(got, want); };
        kernels().apply_sums(sample_update(kind, decay), sums.span(), from.view(), got.span());
        scalar_variant().apply_sums(sample_update(kind, decay), sums.span(), from.view(), want.span());
        EXPECT_TRUE(same_states()) << "sums, kind " << static_cast<int>(kind) << ", " << elements;
        kernels().apply_floats(sample_update(kind, decay), floats.span(), from.view(), got.span());
        scalar_variant().apply_floats(sample_update(kind, decay), floats.span(), from.view(), want.span());
        EXPECT_TRUE(same_states()) << "floats, kind " << static_cast<int>(kind) << ", " << elements;
        Update past = sample_update(kind, decay);
        past.past_caches = true;
        kernels().apply_floats(past, floats.span(), from.view(), got.span());
        EXPECT_TRUE(same_states()) << "floats past the caches, kind " << static_cast<int>(kind) << ", " << elements;
        scalar_variant().apply_sums(sample_update(kind, decay), sums.span(), from.view(), want.span());
        kernels().apply_sums(past, sums.span(), from.view(), got.span());
        EXPECT_TRUE(same_states()) << "sums past the caches, kind " << static_cast<int>(kind) << ", " << elements;
      }
    }
  }
}

TEST_P(ApplyTest, FollowsTheFormulasInDouble) {
  constexpr double kTolerance = 4e-7;  // times the largest term: a handful of roundings of 2^-24
  constexpr std::size_t kElements = 1536;
  const State from = random_state(kElements);
  const auto sums = some_sums(kElements);
  for (const OptimizerKind kind : values_of<OptimizerKind>()) {
    for (const float decay : {0.0F, 5e-4F}) {
      const Update u = sample_update(kind, decay);
      State to(kElements);
      kernels().apply_sums(u, sums.span(), from.view(), to.span());
      for (std::size_t i = 0; i < kElements; ++i) {
        const double w = from.parameters[i], m = from.slot0[i], v = from.slot1[i];
        const bool decoupled = kind == OptimizerKind::kAdamW;
        const double shrunk = decoupled ? w - static_cast<double>(u.decay_rate) * static_cast<double>(decay) * w : w;
        const double g = static_cast<double>(u.scale) * sums[i] + (decoupled ? 0 : static_cast<double>(decay) * w);
        double slot0 = 0, slot1 = 0, step = 0, gain = 1;
        switch (kind) {
          case OptimizerKind::kSgd:
            step = u.rate * g;
            break;
          case OptimizerKind::kMomentum:
            slot0 = static_cast<double>(u.momentum) * m + g;
            step = u.rate * slot0;
            break;
          case OptimizerKind::kAdam:
          case OptimizerKind::kAdamW:
            slot0 = static_cast<double>(u.beta1) * m + static_cast<double>(u.one_minus_beta1) * g;
            slot1 = static_cast<double>(u.beta2) * v + static_cast<double>(u.one_minus_beta2) * g * g;
            gain = 1 / (std::sqrt(slot1) + static_cast<double>(u.epsilon));
            step = u.rate * slot0 / (std::sqrt(slot1) + static_cast<double>(u.epsilon));
            break;
        }
        const double size = std::fabs(m) + std::fabs(g);
        ASSERT_NEAR(to.slot0[i], slot0, kTolerance * size) << i;
        ASSERT_NEAR(to.slot1[i], slot1, kTolerance * (v + g * g)) << i;
        ASSERT_NEAR(to.parameters[i], shrunk - step, kTolerance * (std::fabs(w) + u.rate * size * gain)) << i;
      }
    }
  }
}

TEST_P(ApplyTest, KeepsPaddingZero) {
  const State from(512);
  const AlignedArray<std::int8_t> sums(512);
  for (const OptimizerKind kind : values_of<OptimizerKind>()) {
    State to(512);
    kernels().apply_sums(sample_update(kind, 5e-4F), sums.span(), from.view(), to.span());
    for (std::size_t i = 0; i < 512; ++i) ASSERT_EQ(to.parameters[i], 0) << static_cast<int>(kind);
  }
}

TEST_P(ApplyTest, NeedsNoSlotsThatTheRuleDoesNotUse) {
  const State from = random_state(512);
  const auto sums = some_sums(512);
  State to(512);
  kernels().apply_sums(sample_update(OptimizerKind::kSgd, 0), sums.span(), {from.parameters.span(), {}, {}},
                       {to.parameters.span(), {}, {}});
  const Update u = sample_update(OptimizerKind::kSgd, 0);
  for (std::size_t i = 0; i < 512; ++i) {
    const float g = u.scale * static_cast<float>(sums[i]);
    const float step = u.rate * g;
    ASSERT_EQ(to.parameters[i], from.parameters[i] - step);
  }
}

// A NaN born in an update has other bits on x86 than on a device, and one that was there keeps its own on both.
void expect_one_nan(const AlignedArray<float>& values, std::string_view what) {
  std::size_t nans = 0;
  for (const float value : values) {
    if (!std::isnan(value)) continue;
    ++nans;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), 0x7FC00000U) << what;
  }
  EXPECT_GT(nans, 0U) << what;
}

TEST_P(ApplyTest, WritesOneNanForAll) {
  const std::array<float, 7> values = {
      0, 1, -1, std::bit_cast<float>(0xFFC00123U), -kInfinity, kInfinity, std::bit_cast<float>(0x7F800001U)};
  constexpr std::size_t kElements = 512 * 5;  // more than 7^4: every combination
  State from(kElements);
  AlignedArray<float> floats(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    from.parameters[i] = values[i % 7];
    from.slot0[i] = values[i / 7 % 7];
    from.slot1[i] = values[i / 49 % 7];
    floats[i] = values[i / 343 % 7];
  }
  const auto sums = some_sums(kElements);
  const PlaneArrays codes = random_codes(kElements, 5, 0.3);
  const std::array<ConstPlanes, 1> planes = {codes.view()};
  for (const OptimizerKind kind : values_of<OptimizerKind>()) {
    for (const bool past_caches : {false, true}) {
      Update update = sample_update(kind, 5e-4F);
      update.past_caches = past_caches;
      const auto check = [&](const State& got, const State& want, const std::string& what) {
        expect_one_nan(got.parameters, what);
        if (slot_count(kind) > 0) expect_one_nan(got.slot0, what);
        if (slot_count(kind) > 1) expect_one_nan(got.slot1, what);
        EXPECT_TRUE(same_bytes(got, want)) << what;
      };
      State got(kElements), want(kElements);
      kernels().apply_floats(update, floats.span(), from.view(), got.span());
      scalar_variant().apply_floats(update, floats.span(), from.view(), want.span());
      check(got, want, "floats, kind " + std::to_string(static_cast<int>(kind)));
      kernels().apply_sums(update, sums.span(), from.view(), got.span());
      scalar_variant().apply_sums(update, sums.span(), from.view(), want.span());
      check(got, want, "sums, kind " + std::to_string(static_cast<int>(kind)));
      ASSERT_TRUE(kernels().apply_codes(update, {{}, planes}, from.view(), got.span()));
      ASSERT_TRUE(scalar_variant().apply_codes(update, {{}, planes}, from.view(), want.span()));
      check(got, want, "codes, kind " + std::to_string(static_cast<int>(kind)));
    }
  }
  kernels().average(from.parameters.span(), 0.5F, floats.span());
  expect_one_nan(floats, "average");
}

class ElementwiseTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(ElementwiseTest);

TEST_P(ElementwiseTest, AddsFloatsFromAnyAddress) {
  for (const std::size_t elements : kLengths) {
    const auto addend = gaussian(elements, 41);
    for (const std::size_t shift : {0, 1, 3}) {
      std::vector<std::byte> payload(addend.span().size_bytes() + shift);
      if (elements > 0) std::memcpy(payload.data() + shift, addend.data(), addend.span().size_bytes());
      auto total = gaussian(elements, 42);
      const auto before = gaussian(elements, 42);
      kernels().accumulate_floats(std::span(payload).subspan(shift), total.span());
      for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(total[i], before[i] + addend[i]) << i;
    }
  }
}

// Two roundings each, as the formulas say: a fused multiply-add would differ.
TEST_P(ElementwiseTest, AddsAScaledSpanAndAverages) {
  for (const std::size_t elements : kLengths) {
    const auto parameters = gaussian(elements, 43);
    const auto before = gaussian(elements, 44);
    auto gradient = gaussian(elements, 44);
    auto mean = gaussian(elements, 44);
    kernels().add_scaled(parameters.span(), 0.0123F, gradient.span());
    kernels().average(parameters.span(), 0.1F, mean.span());
    for (std::size_t i = 0; i < elements; ++i) {
      const float product = 0.0123F * parameters[i];
      ASSERT_EQ(gradient[i], before[i] + product) << i;
      const float pull = 0.1F * (parameters[i] - before[i]);
      ASSERT_EQ(mean[i], before[i] + pull) << i;
    }
  }
}

}  // namespace
}  // namespace tg::kernels::test

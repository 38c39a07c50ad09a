// Each rule's defining property, on gradients small enough to see through.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kernels/base/aligned_array.h"
#include "tests/plain/differences.h"
#include "tests/plain/floats.h"
#include "tests/plain/levels.h"
#include "tests/plain/rules.h"
#include "tests/plain/signs.h"
#include "tests/plain/sparse.h"
#include "tests/plain/ternary.h"

namespace tg::plain {
namespace {

const kernels::Kernels& scalar() { return *kernels::available().back(); }

engine::SegmentTable table(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<engine::Segment> segments;
  for (const auto& shape : shapes) {
    engine::Segment one;
    one.name = "segment" + std::to_string(segments.size());
    one.element_count = 1;
    for (const std::int64_t side : shape) one.element_count *= static_cast<std::size_t>(side);
    one.shape = shape;
    segments.push_back(one);
  }
  return engine::SegmentTable(segments);
}

// The members' gradients over a table, drawn with a bell of another size for each member and segment.
struct Members {
  Members(const engine::SegmentTable& of, std::size_t members, std::uint64_t seed) : segments(of) {
    simulation::Random random(seed);
    for (std::size_t rank = 0; rank < members; ++rank) {
      gradients.emplace_back(of.padded_count());
      for (const engine::Segment& segment : of.segments()) {
        const double size = 0.1 + random.unit();
        for (std::size_t i = 0; i < segment.element_count; ++i)
          gradients[rank][segment.offset + i] =
              static_cast<float>(size * (random.unit() + random.unit() + random.unit() + random.unit() - 2));
      }
    }
  }
  std::vector<double> mean() const {
    std::vector<double> mean(segments.padded_count());
    for (const AlignedArray<float>& gradient : gradients)
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i] += static_cast<double>(gradient[i]) / static_cast<double>(gradients.size());
    return mean;
  }
  std::vector<float> apply(Rule& rule, std::uint32_t step, Bits* bits = nullptr) const {
    std::vector<std::span<const float>> spans;
    for (const AlignedArray<float>& gradient : gradients) spans.emplace_back(gradient.span());
    std::vector<float> applied(segments.padded_count());
    const Bits found = rule.mean({scalar(), 11, step}, segments, spans, applied);
    if (bits != nullptr) *bits = found;
    return applied;
  }

  engine::SegmentTable segments;
  std::vector<AlignedArray<float>> gradients;
};

// How many standard deviations the mean of many draws is off, at worst; for each element by its own deviation.
double worst_z(const Members& members, Rule& rule, const std::vector<double>& expected, std::uint32_t draws) {
  std::vector<double> sums(expected.size()), squares(expected.size());
  for (std::uint32_t draw = 0; draw < draws; ++draw) {
    const std::vector<float> applied = members.apply(rule, draw);
    for (std::size_t i = 0; i < applied.size(); ++i) {
      const double off = applied[i] - expected[i];
      sums[i] += off;
      squares[i] += off * off;
    }
  }
  double worst = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double rounding = 1e-6 * draws;  // floats', where nothing is drawn
    worst = std::max(worst, std::max(0.0, std::fabs(sums[i]) - rounding) / std::sqrt(squares[i] + 1e-12));
  }
  return worst;
}

constexpr std::uint32_t kDraws = 3000;
constexpr double kMaxZ = 5;  // one in a million of the elements is further off, and there are some hundred

const engine::SegmentTable& small() {
  static const engine::SegmentTable segments = table({{6, 20}, {7}});
  return segments;
}

TEST(PlainRules, EachHasAName) {
  std::set<std::string> names;
  for (const NamedRule& one : rules()) {
    names.insert(one.name);
    EXPECT_NE(make_rule(one.name, {3, 10}), nullptr);
  }
  EXPECT_EQ(names.size(), rules().size());
  EXPECT_EQ(make_rule("terngrad-none", {3, 10}), nullptr);
}

TEST(PlainRules, TheUnbiasedOnesMeetTheMean) {
  for (const char* name : {"terngrad-noclip", "terngrad-global-noclip", "terngrad-512-noclip", "qsgd-4", "qsgd-16",
                           "dorefa-6", "diana-largest", "diana-euclidean", "dqgd", "atomo", "noise", "float32"}) {
    const Members members(small(), 3, 5);
    const auto rule = make_rule(name, {3, kDraws});
    EXPECT_LT(worst_z(members, *rule, members.mean(), kDraws), kMaxZ) << name;
  }
}

// c = 2.5: the mean of what was cut, eq. (21), at the bounds of each member and bucket.
TEST(PlainRules, ClippedTernaryMeetsTheMeanOfTheClippedGradient) {
  const engine::SegmentTable segments = table({{30, 40}, {300}});
  for (const std::size_t bucket : {std::size_t{0}, std::size_t{512}}) {
    const Members members(segments, 2, 6);
    std::vector<double> expected(segments.padded_count());
    bool cut = false;
    for (const AlignedArray<float>& gradient : members.gradients)
      for (const engine::Segment& segment : segments.segments())
        for (std::size_t at = 0; at<segment.element_count; at += bucket> 0 ? bucket : segment.element_count) {
          const std::size_t left = segment.element_count - at, count = bucket > 0 ? std::min(bucket, left) : left;
          double sum = 0, squares = 0;
          for (std::size_t i = 0; i < count; ++i) {
            const double g = gradient[segment.offset + at + i];
            sum += g;
            squares += g * g;
          }
          const double mean = sum / static_cast<double>(count);
          const double bound = 2.5 * std::sqrt(squares / static_cast<double>(count) - mean * mean);
          for (std::size_t i = segment.offset + at; i < segment.offset + at + count; ++i) {
            cut = cut || std::fabs(gradient[i]) > bound;
            expected[i] += std::clamp<double>(gradient[i], -bound, bound) / 2;
          }
        }
    ASSERT_TRUE(cut);
    TernGrad rule({.bucket = bucket});
    EXPECT_LT(worst_z(members, rule, expected, 1000), kMaxZ) << bucket;
  }
}

// A bucket that holds the whole segment, and one scaler for all of one segment: the same bits.
TEST(PlainRules, OneBucketIsALayerAndOneLayerIsAll) {
  const Members members(table({{500}}), 3, 7);
  TernGrad layer({}), bucket({.bucket = 512}), global({.global = true});
  EXPECT_EQ(members.apply(layer, 4), members.apply(bucket, 4));
  EXPECT_EQ(members.apply(layer, 4), members.apply(global, 4));
}

TEST(PlainRules, ASharedScalerIsTheLargest) {
  const Members members(table({{500}}), 3, 7);
  TernGrad rule({.clip_sigma = 0});
  const std::vector<float> applied = members.apply(rule, 4);
  double most = 0;
  for (const AlignedArray<float>& gradient : members.gradients) most = std::max(most, largest(gradient.span()));
  const double unit = most * 256 / 255 / 3;  // what is applied are whole multiples of it
  bool some = false;
  for (const float value : applied) {
    const double times = value / unit;
    EXPECT_NEAR(times, std::round(times), 1e-4);
    some = some || std::round(times) != 0;
  }
  EXPECT_TRUE(some);
}

// With its own scaler a member's code is worth more or less than another's: each value has to be its own.
TEST(PlainRules, OwnScalersAreEachTheirMembers) {
  Members members(small(), 2, 8);
  for (float& value : members.gradients[0]) value *= 8;
  TernGrad rule({.clip_sigma = 0, .shared = false});
  EXPECT_LT(worst_z(members, rule, members.mean(), kDraws), kMaxZ);
  const std::vector<float> applied = members.apply(rule, 1);
  const auto most = static_cast<float>(largest(members.gradients[1].span()));
  EXPECT_TRUE(std::ranges::any_of(applied, [&](float value) { return value != 0 && std::fabs(value) < most; }));
}

// L = 1 has ternary's two values of a member and its variance s|g| - g^2; more levels have less.
TEST(PlainRules, QsgdOfOneLevelIsTernary) {
  const Members members(table({{400}}), 1, 9);
  const double scaler = largest(members.gradients[0].span());
  double ternary = 0;
  for (const float g : members.gradients[0]) ternary += scaler * std::fabs(g) - static_cast<double>(g) * g;
  const auto variance = [&](int levels) {
    Qsgd rule(levels, 512);
    double errors = 0;
    for (std::uint32_t draw = 0; draw < 400; ++draw) {
      const std::vector<float> applied = members.apply(rule, draw);
      for (std::size_t i = 0; i < applied.size(); ++i) {
        const double error = applied[i] - members.gradients[0][i];
        errors += error * error / 400;
        const double times = applied[i] / scaler * levels;
        EXPECT_NEAR(times, std::round(times), 1e-4);
      }
    }
    return errors;
  };
  EXPECT_NEAR(variance(1) / ternary, 1, 0.03);
  EXPECT_LT(variance(4), 0.2 * ternary);
}

TEST(PlainRules, QsgdHasAScalerABucket) {
  Members members(table({{1024}}), 1, 9);
  for (std::size_t i = 512; i < 1024; ++i) members.gradients[0][i] *= 1e-4F;
  Qsgd rule(4, 512);
  const std::vector<float> applied = members.apply(rule, 1);
  EXPECT_TRUE(std::any_of(applied.begin() + 512, applied.end(), [](float value) { return value != 0; }));
  EXPECT_LT(largest(std::span(applied).subspan(512)), 1e-3);
}

TEST(PlainRules, Fixed16RoundsToItsGridAndNotToOneSide) {
  Members members(small(), 1, 10);
  members.gradients[0][0] = 3e-5F;  // half a unit
  members.gradients[0][1] = -77;    // beyond the range
  Fixed16 rule;
  std::vector<double> expected(members.gradients[0].begin(), members.gradients[0].end());
  expected[1] = -2;
  EXPECT_LT(worst_z(members, rule, expected, kDraws), kMaxZ);
  for (const float value : members.apply(rule, 1)) EXPECT_EQ(value, std::round(value * 0x1p14F) * 0x1p-14F);
}

TEST(PlainRules, DorefaHasSoManyLevelsAndNoZero) {
  const Members members(table({{3000}}), 1, 11);
  Dorefa rule(3);
  std::set<float> values;
  for (std::uint32_t draw = 0; draw < 20; ++draw) {
    const std::vector<float> applied = members.apply(rule, draw);
    values.insert(applied.begin(), applied.begin() + 3000);
  }
  EXPECT_EQ(values.size(), 8U);
  EXPECT_FALSE(values.contains(0.0F));
}

// What was applied and what is still owed add up to what came in.
void expect_conserved(Rule& rule, double share_applied_at_once) {
  const Members members(small(), 3, 12);
  Members nothing(small(), 3, 12);
  for (AlignedArray<float>& gradient : nothing.gradients) std::ranges::fill(gradient, 0.0F);
  std::vector<double> sums(small().padded_count());
  const std::vector<double> mean = members.mean();
  const auto apply = [&](const Members& of, std::uint32_t step) {
    const std::vector<float> applied = of.apply(rule, step);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(applied[i]);
  };
  apply(members, 0);
  double owed = 0, all = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    owed += std::fabs(mean[i] - sums[i]);
    all += std::fabs(mean[i]);
  }
  EXPECT_GT(owed, share_applied_at_once * all);  // else nothing would be left to see
  for (std::uint32_t step = 1; step < 1200; ++step) apply(step < 200 ? members : nothing, step);
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(sums[i], 200 * mean[i], 1e-2) << i;
}

TEST(PlainRules, DroppedElementsComeLater) {
  Largest rule(0.05, true);
  expect_conserved(rule, 0.3);
  EXPECT_EQ(rule.own_bytes(), 127U * sizeof(float));
}

// Errors that are kept shrink as nothing new comes; without them the same signs would be sent for ever.
TEST(PlainRules, OneBitKeepsItsErrors) {
  OneBit rule;
  expect_conserved(rule, 0.1);
  EXPECT_EQ(rule.own_bytes(), 127U * sizeof(float));
}

TEST(PlainRules, OneBitHasTwoValuesAColumn) {
  const Members members(small(), 1, 13);
  OneBit rule;
  const std::vector<float> applied = members.apply(rule, 0);
  std::set<float> all;
  for (std::size_t column = 0; column < 6; ++column) {
    const auto begin = applied.begin() + static_cast<std::ptrdiff_t>(20 * column);
    const std::set<float> values(begin, begin + 20);
    EXPECT_EQ(values.size(), 2U);
    EXPECT_LT(*values.begin(), 0);
    all.insert(values.begin(), values.end());
  }
  EXPECT_EQ(all.size(), 12U);
}

TEST(PlainRules, ThoseKeptAreTheLargest) {
  const Members members(table({{1000}}), 1, 14);
  for (const std::size_t k : {std::size_t{1}, std::size_t{10}, std::size_t{999}}) {
    std::vector<float> sizes;
    for (std::size_t i = 0; i < 1000; ++i) sizes.push_back(std::fabs(members.gradients[0][i]));
    std::ranges::sort(sizes, std::greater<>());
    EXPECT_EQ(kth_largest(members.gradients[0].span().first(1000), k), sizes[k - 1]);
    Largest rule(static_cast<double>(k) / 1000, false);
    const std::vector<float> applied = members.apply(rule, 0);
    for (std::size_t i = 0; i < 1000; ++i)
      EXPECT_EQ(applied[i], std::fabs(members.gradients[0][i]) >= sizes[k - 1] ? members.gradients[0][i] : 0);
    EXPECT_EQ(members.apply(rule, 1), applied);  // nothing is kept for later
  }
}

TEST(PlainRules, AtomoKeepsItsBudget) {
  const Members members(table({{1600}}), 1, 15);
  double sent = 0;
  Atomo rule(1.0 / 16);
  for (std::uint32_t draw = 0; draw < 200; ++draw) {
    const std::vector<float> applied = members.apply(rule, draw);
    sent += static_cast<double>(std::ranges::count_if(applied, [](float value) { return value != 0; })) / 200;
  }
  EXPECT_NEAR(sent, 100, 3);
}

// The largest are certain and exact, where they would otherwise be drawn with a probability above 1.
TEST(PlainRules, AtomoSendsTheLargestAsTheyAre) {
  Members members(table({{64}}), 1, 15);
  members.gradients[0][3] = 100;
  Atomo rule(4.0 / 64);
  for (std::uint32_t draw = 0; draw < 50; ++draw) EXPECT_EQ(members.apply(rule, draw)[3], 100);
}

TEST(PlainRules, AMajorityIsNotMovedByOneAndHasNoSize) {
  Members members(table({{100}}), 3, 16);
  for (std::size_t i = 0; i < 100; ++i) {
    members.gradients[0][i] = 1;
    members.gradients[1][i] = 1;
    members.gradients[2][i] = i % 2 == 0 ? 1.0F : -1000.0F;  // the mean is far below 0
  }
  MajorityVote rule;
  const std::vector<float> applied = members.apply(rule, 0);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(applied[i], 1);
  EXPECT_EQ(applied[100], 0);  // padding has no say
}

TEST(PlainRules, DitheredSignsFollowSizesAndContinueAtTheirRate) {
  constexpr std::uint32_t kUntil = 4000;
  Members members(table({{64}}), 2, 17);
  std::ranges::copy(members.gradients[0], members.gradients[1].begin());
  DitheredSign rule(kUntil);
  std::vector<double> sums(64);
  double square = 0;
  for (std::uint32_t step = 0; step < kUntil; ++step) {
    const std::vector<float> applied = members.apply(rule, step);
    for (std::size_t i = 0; i < 64; ++i) {
      if (step < kUntil / 4) sums[i] += applied[i] / (kUntil / 4.0);
      if (step >= kUntil - 50) square += static_cast<double>(applied[i]) * applied[i] / 50;
    }
  }
  const AlignedArray<float>& gradient = members.gradients[0];
  double squares = 0, signs = 0;
  for (std::size_t i = 0; i < 64; ++i) squares += static_cast<double>(gradient[i]) * gradient[i];
  const double sigma = std::sqrt(squares / 64);
  for (std::size_t i = 0; i < 64; ++i) {
    signs += std::fabs(gradient[i]);
    if (std::fabs(gradient[i]) > 0.5 * sigma) continue;
    // P(sign = 1) - P(sign = -1) = erf(g / (sqrt(2) sigma_t)), sigma_t from sigma to 3/4 of it.
    EXPECT_NEAR(sums[i], std::erf(gradient[i] / (std::sqrt(2.0) * 0.87 * sigma)), 0.12);
  }
  // The noise is 0 at the end, |p g| / |g|^2 is sum |g| / |g|^2, and the gradient is applied at that rate.
  EXPECT_NEAR(square, 64, 3);
  const std::vector<float> applied = members.apply(rule, kUntil);
  for (std::size_t i = 0; i < 64; ++i)
    EXPECT_NEAR(applied[i], gradient[i] * signs / squares, 0.06 * std::fabs(gradient[i]) * signs / squares);
}

// Full gradients of sum |w - o_r|^2 / 2 with optima o_r that differ: at the common optimum no member's gradient is 0.
// A member that sends its gradient's codes never comes to rest there; one that sends what it has not yet learned does.
double distance_after(Rule& rule, std::uint32_t steps) {
  constexpr std::size_t kCount = 40, kMembers = 4;
  const engine::SegmentTable segments = table({{kCount}});
  const Members optima(segments, kMembers, 18);
  const std::vector<double> optimum = optima.mean();
  std::vector<float> at(segments.padded_count());
  Members members(segments, kMembers, 18);
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::size_t rank = 0; rank < kMembers; ++rank)
      for (std::size_t i = 0; i < kCount; ++i) members.gradients[rank][i] = at[i] - optima.gradients[rank][i];
    const std::vector<float> applied = members.apply(rule, step);
    for (std::size_t i = 0; i < kCount; ++i) at[i] -= 0.1F * applied[i];
  }
  double worst = 0;
  for (std::size_t i = 0; i < kCount; ++i) worst = std::max(worst, std::fabs(at[i] - optimum[i]));
  return worst;
}

TEST(PlainRules, DianaFindsTheOptimumWhereTernaryStalls) {
  constexpr std::uint32_t kSteps = 3000;
  for (const Norm norm : {Norm::kLargest, Norm::kEuclidean}) {
    Diana learning(norm, true), plain(norm, false);
    EXPECT_LT(distance_after(learning, kSteps), 1e-6);
    EXPECT_GT(distance_after(plain, kSteps), 1e-2);
  }
  TernGrad ternary({});
  EXPECT_GT(distance_after(ternary, kSteps), 1e-2);
}

TEST(PlainRules, NoiseHasTernarysVariance) {
  const Members members(table({{400}}), 2, 19);
  const auto errors_of = [&](const char* name) {
    const auto rule = make_rule(name, {2, 400});
    const std::vector<double> mean = members.mean();
    double errors = 0;
    for (std::uint32_t draw = 0; draw < 400; ++draw) {
      const std::vector<float> applied = members.apply(*rule, draw);
      for (std::size_t i = 0; i < 400; ++i) errors += (applied[i] - mean[i]) * (applied[i] - mean[i]);
    }
    return errors;
  };
  EXPECT_NEAR(errors_of("noise") / errors_of("terngrad-noclip"), 1, 0.03);
}

TEST(PlainRules, AGradientIsAppliedWhenTheOthersHaveHadTheirTurn) {
  Asynchronous rule(3);
  EXPECT_EQ(rule.at_a_time(3), 1U);
  std::vector<std::vector<float>> applied;
  std::vector<Members> updates;
  for (std::uint64_t seed = 0; seed < 5; ++seed) updates.emplace_back(small(), 1, seed);
  for (const Members& update : updates) applied.push_back(update.apply(rule, 0));
  const auto is = [&](std::size_t update, std::size_t gradient) {
    return std::ranges::equal(applied[update], updates[gradient].gradients[0]);
  };
  EXPECT_TRUE(std::ranges::all_of(applied[1], [](float value) { return value == 0; }));
  EXPECT_TRUE(is(2, 0) && is(3, 1) && is(4, 2));
  Asynchronous alone(1);
  EXPECT_TRUE(std::ranges::equal(updates[0].apply(alone, 0), updates[0].gradients[0]));  // SGD
}

TEST(PlainRules, Float16IsRoundedToTheNearest) {
  EXPECT_EQ(to_float16(1 + 0x1p-11F), 1);              // a tie goes to the even one
  EXPECT_EQ(to_float16(1 + 0x1.8p-10F), 1 + 0x1p-9F);  // here too
  EXPECT_EQ(to_float16(0x1.8p-25F), 0x1p-24F);         // the smallest
  EXPECT_EQ(to_float16(-0x1p-26F), 0);
  EXPECT_EQ(to_float16(65504), 65504);
  EXPECT_TRUE(std::isinf(to_float16(70000)));
}

// Codes of which 1, 1, 2, 4 of 8 are alike have 1.75 bits each.
TEST(PlainRules, EntropyIsOfOrderZero) {
  const Round round{scalar()};
  EXPECT_DOUBLE_EQ(entropy_bits(round, std::vector<int>{0, 0, 0, 0, 1, 1, -1, 5}), 14);
  EXPECT_DOUBLE_EQ(entropy_bits(round, std::vector<int>(100, 3)), 0);
  const Bits bits = bits_of(round, {{0, 1, 0, 1}, {1, 0, 1, 0}}, 4);
  EXPECT_DOUBLE_EQ(bits.sent, 4);
  EXPECT_DOUBLE_EQ(bits.sum, 0);  // the sums are all 1
  EXPECT_EQ(bits_of({.kernels = scalar(), .priced = false}, {{0, 1}}, 2).sent, 0);
}

TEST(PlainRules, BitsByRule) {
  const Members members(table({{30, 40}, {300}}), 2, 20);
  const auto bits_of_rule = [&](const char* name) {
    Bits bits;
    members.apply(*make_rule(name, {2, 10}), 0, &bits);
    return bits;
  };
  EXPECT_EQ(bits_of_rule("float32").sent, 32 * 1500);
  EXPECT_EQ(bits_of_rule("float16").sum, 16 * 1500);
  const Bits layer = bits_of_rule("terngrad"), buckets = bits_of_rule("terngrad-512"), one = bits_of_rule("one-bit");
  EXPECT_GT(layer.sent, 0.5 * 1500);
  EXPECT_LT(layer.sent, std::log2(3) * 1500 + 2 * 32);
  EXPECT_LT(layer.sum, std::log2(5) * 1500);
  EXPECT_GT(buckets.sent, layer.sent);
  EXPECT_LE(one.sent, 1500 + 31 * 64);
  EXPECT_GT(one.sent, 1300 + 31 * 64);
}

}  // namespace
}  // namespace tg::plain

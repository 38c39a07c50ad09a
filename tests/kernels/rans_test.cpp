// The entropy-coded payloads. What the codes and sums are is codes_test's and sums_test's business.
#include "kernels/rans.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/kernels/variants.h"

namespace tg::kernels::test {
namespace {

using Payload = std::vector<std::byte>;
using Runs = std::vector<std::size_t>;

std::size_t total_of(const Runs& runs) { return std::accumulate(runs.begin(), runs.end(), std::size_t{0}); }

// One of them with 256 lanes, whose steps are four words.
const std::vector<Runs>& run_lists() {
  static const std::vector<Runs> lists = {{},
                                          {0},
                                          {512},
                                          {0, 1024, 0},
                                          {512, 512, 1536},
                                          {4096, 512, 2048, 512, 512},
                                          {16384, 512, 1024},
                                          {65536, 512, 65536 + 1024, 0, 4608}};
  return lists;
}

Payload codes_rans(const Kernels& kernels, const PlaneArrays& codes, const Runs& runs) {
  Payload payload(codes_bound(codes.nonzero.size() * kWordBits));
  payload.resize(kernels.encode_codes_rans(codes.view(), runs, payload));
  return payload;
}

Payload sums_rans(const Kernels& kernels, const AlignedArray<std::int8_t>& sums, int members, const Runs& runs) {
  Payload payload(sums_bound(sums.size(), members));
  payload.resize(kernels.encode_sums_rans(sums.span(), members, runs, payload));
  return payload;
}

// Run r has nonzeros with the share shares[r % size].
PlaneArrays codes_of(const Runs& runs, std::span<const double> shares, std::uint64_t seed) {
  PlaneArrays codes(total_of(runs));
  std::size_t word = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const PlaneArrays part = random_codes(runs[r], seed + r, shares[r % shares.size()]);
    std::ranges::copy(part.nonzero, codes.nonzero.begin() + word);
    std::ranges::copy(part.negative, codes.negative.begin() + word);
    word += part.nonzero.size();
  }
  return codes;
}

AlignedArray<std::int8_t> sums_of(std::size_t elements, int members, std::uint64_t seed, double share) {
  AlignedArray<std::int8_t> sums(elements);
  std::mt19937_64 random(seed);
  std::binomial_distribution<int> nonzero(members, share);
  for (std::int8_t& sum : sums) {
    const int count = nonzero(random);
    sum = static_cast<std::int8_t>(2 * std::binomial_distribution<int>(count, 0.5)(random) - count);
  }
  return sums;
}

double entropy(double p) { return p <= 0 || p >= 1 ? 0 : -p * std::log2(p) - (1 - p) * std::log2(1 - p); }

TEST(RansTest, DividesExactly) {
  for (unsigned f = 1; f < 256; ++f) {
    const RansDivision& by = rans_division(f);
    for (unsigned x = 0; x < 256 * f; ++x) {
      ASSERT_EQ((x + by.increment) * by.multiplier >> 16 >> by.shift, x / f) << x << " / " << f;
    }
  }
}

TEST(RansTest, ChoosesTheNearestProbability) {
  EXPECT_EQ(rans_probability(0, 512), 0);
  EXPECT_EQ(rans_probability(512, 512), 0x80);
  EXPECT_EQ(rans_probability(1, 1 << 20), 1);
  EXPECT_EQ(rans_probability((1 << 20) - 1, 1 << 20), 0x81);
  EXPECT_EQ(rans_probability(256, 512), 127);
  EXPECT_EQ(rans_probability(257, 512), 0xFF);
  EXPECT_EQ(rans_probability(5, 512), 3) << "2.5, ties up";
  EXPECT_EQ(rans_probability(4, 512), 2);
}

class RansTest : public EveryVariant {};
TG_TEST_EVERY_VARIANT(RansTest);

// Frozen: a change of these bytes is a change of the protocol.
TEST_P(RansTest, EncodesTheDocumentedBytes) {
  PlaneArrays codes(2048);  // raw: 256 + 1 bytes; lanes: 64
  codes.nonzero[0] = 1;     // run 0: 2 of 1024 elements, 64 and 0
  codes.nonzero[1] = 1;
  codes.negative[1] = 1;
  const Payload got = codes_rans(kernels(), codes, {1024, 1024});
  // Every lane codes 16 symbols of run 0; run 1 is empty. x = 256, 255 symbols of width 255:
  //   x / 255 * 256 + x % 255 + 1 = 258, 260, ... grows by two each time up to 288, lane 0 apart.
  Payload want(130);
  for (std::size_t lane = 0; lane < 64; ++lane) {
    want[lane] = std::byte{1};
    want[64 + lane] = std::byte{32};
  }
  want[128] = std::byte{1};  // round(256 * 2 / 1024) = 1 (0.5, ties up)
  want[129] = std::byte{0};
  // Lane 0: 256 + sign byte 0b10 = 258; both first bits are rare (f = 1): gives 2, x = 1 -> 256; gives 0, x = 1 -> 256;
  // then 14 common ones: 256 + 28.
  want[0] = std::byte{1};
  want[64] = std::byte{28};
  want.push_back(std::byte{2});
  want.push_back(std::byte{0});
  EXPECT_EQ(got, want);
  PlaneArrays decoded(2048);
  ASSERT_TRUE(kernels().decode_codes_rans(want, Runs{1024, 1024}, decoded.planes()));
  EXPECT_TRUE(same_bytes(codes, decoded));
  // The same symbols coded from states that no encoder starts with.
  const auto refused = [&](std::size_t at, unsigned value) {
    Payload odd = want;
    odd[at] = static_cast<std::byte>(value);
    return !kernels().decode_codes_rans(odd, Runs{1024, 1024}, decoded.planes());
  };
  EXPECT_TRUE(refused(64 + 5, 33)) << "lane 5 from 257, where there is no sign byte";
  EXPECT_TRUE(refused(130, 6)) << "lane 0 from 262: a third sign of two";
  Payload large = want;
  large[7] = std::byte{2};
  large[64 + 7] = std::byte{48};
  EXPECT_FALSE(kernels().decode_codes_rans(large, Runs{1024, 1024}, decoded.planes())) << "lane 7 from 512";
  // Backward from x = 2, below 256, lane 5 would take a byte at once: (2 - 1) * 256 + 30, what 15 symbols leave of 256.
  Payload small = want;
  small[5] = std::byte{0};
  small[64 + 5] = std::byte{2};
  small.push_back(std::byte{30});
  EXPECT_FALSE(kernels().decode_codes_rans(small, Runs{1024, 1024}, decoded.planes())) << "lane 5 below 256";
}

TEST_P(RansTest, CodesComeBackAtEveryDensity) {
  for (const Runs& runs : run_lists()) {
    const std::size_t elements = total_of(runs);
    for (const double share : {0.0, 0.001, 0.01, 0.08, 0.32, 0.5, 0.6, 0.9, 0.999, 1.0}) {
      const double shares[] = {share, 1 - share, 0, share / 2, 1};
      for (const std::size_t used : {1, 5}) {
        const PlaneArrays codes = codes_of(runs, std::span(shares).first(used), elements + used);
        const Payload payload = codes_rans(kernels(), codes, runs);
        ASSERT_EQ(payload, codes_rans(scalar_variant(), codes, runs)) << elements << " at " << share;
        if (payload.empty()) continue;
        for (const std::size_t shift : {0, 1, 7}) {
          Payload moved(shift);
          moved.insert(moved.end(), payload.begin(), payload.end());
          PlaneArrays decoded(elements);
          ASSERT_TRUE(kernels().decode_codes_rans(std::span(moved).subspan(shift), runs, decoded.planes()));
          ASSERT_TRUE(same_bytes(codes, decoded)) << elements << " at " << share;
        }
      }
    }
  }
}

TEST_P(RansTest, SumsComeBackForEveryNumberOfMembers) {
  for (int members = 1; members <= kMaxMembers; ++members) {
    const auto m = static_cast<std::size_t>(members);
    const Runs& runs = run_lists()[members % 20 == 8 ? 7 : m % 7];
    for (const double share : {0.02, 0.32, 0.8}) {
      const auto sums = sums_of(total_of(runs), members, m, share);
      const Payload payload = sums_rans(kernels(), sums, members, runs);
      ASSERT_EQ(payload, sums_rans(scalar_variant(), sums, members, runs)) << members << " at " << share;
      if (payload.empty()) continue;
      AlignedArray<std::int8_t> decoded(sums.size());
      ASSERT_TRUE(kernels().decode_sums_rans(payload, members, runs, decoded.span())) << members << " at " << share;
      ASSERT_TRUE(same_bytes(sums, decoded)) << members << " at " << share;
    }
  }
}

TEST_P(RansTest, SumsComeBackAtTheExtremes) {
  const Runs runs = {8192, 512, 4096};
  for (const int members : {1, 2, 3, 8, kMaxMembers}) {
    for (const int value : {0, 1, -1, members, -members}) {
      AlignedArray<std::int8_t> sums(total_of(runs));
      for (std::int8_t& sum : sums) sum = static_cast<std::int8_t>(value);
      sums[8195] = 0;
      const Payload payload = sums_rans(kernels(), sums, members, runs);
      ASSERT_EQ(payload, sums_rans(scalar_variant(), sums, members, runs));
      ASSERT_FALSE(payload.empty()) << "every plane but one is all ones or all zeros";
      AlignedArray<std::int8_t> decoded(sums.size());
      ASSERT_TRUE(kernels().decode_sums_rans(payload, members, runs, decoded.span()));
      EXPECT_TRUE(same_bytes(sums, decoded)) << members;
    }
  }
}

TEST_P(RansTest, ASingleMembersSumsAreItsCodes) {
  const Runs runs = {16384, 512};
  const PlaneArrays codes = random_codes(total_of(runs), 4, 0.1);
  AlignedArray<std::int8_t> sums(total_of(runs));
  kernels().accumulate_planes(codes.view(), sums.span());
  EXPECT_EQ(sums_rans(kernels(), sums, 1, runs), codes_rans(kernels(), codes, runs));
}

TEST_P(RansTest, IsSmallerThanRawOrNothing) {
  for (const Runs& runs : run_lists()) {
    const std::size_t elements = total_of(runs);
    for (const double share : {0.0, 0.05, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 1.0}) {
      const PlaneArrays codes = random_codes(elements, elements + 9, share);
      Payload raw(codes_bound(elements));
      raw.resize(kernels().encode_codes(codes.view(), raw));
      EXPECT_LT(codes_rans(kernels(), codes, runs).size(), std::max<std::size_t>(raw.size(), 1));
    }
  }
  EXPECT_TRUE(codes_rans(kernels(), random_codes(4096, 1, 0.5), {4096}).empty())
      << "one bit an element, and the states";
}

// The targets that tests/bench/run prints too.
TEST_P(RansTest, ComesCloseToTheEntropy) {
  if (kernels().name == "scalar") GTEST_SKIP() << "too slow, and the bytes are the same";
  constexpr std::size_t kElements = 512 * 1024;
  const Runs runs = {kElements};
  for (const double zeros : {0.5, 0.68, 0.8, 0.85, 0.9, 0.95, 0.99}) {
    const PlaneArrays codes = random_codes(kElements, 7, 1 - zeros);
    Payload payload = codes_rans(kernels(), codes, runs);
    if (payload.empty()) payload.resize(codes_bound(kElements) - kPayloadSlack - kElements / 16);  // raw, at 50 %
    const double bits = static_cast<double>(kElements) * (entropy(zeros) + 1 - zeros);
    EXPECT_LE(static_cast<double>(payload.size()) * 8, bits * (zeros <= 0.85 ? 1.01 : 1.06)) << zeros;
  }
  for (const int members : {2, 4, 8}) {
    const auto sums = sums_of(kElements, members, 5, 0.32);
    std::vector<double> counts(2 * static_cast<std::size_t>(members) + 1);
    for (const std::int8_t sum : sums) ++counts[static_cast<std::size_t>(sum + members)];
    double bits = 0;
    for (const double count : counts)
      bits -= count == 0 ? 0 : count * std::log2(count / static_cast<double>(kElements));
    EXPECT_LE(static_cast<double>(sums_rans(kernels(), sums, members, runs).size()) * 8, bits * 1.03) << members;
  }
}

TEST_P(RansTest, RefusesWrongLengths) {
  const Runs runs = {8192, 1024};
  const auto sums = sums_of(total_of(runs), 3, 6, 0.2);
  const PlaneArrays codes = random_codes(total_of(runs), 5, 0.1);
  AlignedArray<std::int8_t> decoded(sums.size());
  PlaneArrays planes(sums.size());
  const Payload coded_sums = sums_rans(kernels(), sums, 3, runs), coded_codes = codes_rans(kernels(), codes, runs);
  ASSERT_FALSE(coded_sums.empty() || coded_codes.empty());
  for (std::size_t bytes = 0; bytes < coded_sums.size(); ++bytes) {
    EXPECT_FALSE(kernels().decode_sums_rans(std::span(coded_sums).first(bytes), 3, runs, decoded.span())) << bytes;
  }
  for (std::size_t bytes = 0; bytes < coded_codes.size(); ++bytes) {
    EXPECT_FALSE(kernels().decode_codes_rans(std::span(coded_codes).first(bytes), runs, planes.planes())) << bytes;
  }
  Payload longer = coded_codes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(kernels().decode_codes_rans(longer, runs, planes.planes()));
  EXPECT_FALSE(kernels().decode_codes_rans(coded_codes, Runs{1024, 8192}, planes.planes())) << "other runs";
  EXPECT_FALSE(kernels().decode_codes_rans({}, Runs{}, PlaneArrays(0).planes())) << "no fewer bytes than raw";
}

TEST_P(RansTest, RefusesStatesAndNumbersThatNoEncoderWrites) {
  const Runs runs = {8192, 1024};
  const PlaneArrays codes = random_codes(total_of(runs), 5, 0.02);  // 23 sign bytes, so 41 states without
  const Payload payload = codes_rans(kernels(), codes, runs);
  PlaneArrays decoded(total_of(runs));
  ASSERT_TRUE(kernels().decode_codes_rans(payload, runs, decoded.planes()));
  for (std::size_t at = 0; at < payload.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Payload odd = payload;
      odd[at] ^= static_cast<std::byte>(1U << bit);
      if (kernels().decode_codes_rans(odd, runs, decoded.planes())) {
        ASSERT_EQ(codes_rans(kernels(), decoded, runs), odd) << "byte " << at << " bit " << bit;
      }
    }
  }
  Payload small_state = payload;
  small_state[3] = std::byte{0};
  EXPECT_FALSE(kernels().decode_codes_rans(small_state, runs, decoded.planes()));
}

Payload mutated(Payload bytes, std::mt19937_64& random) {
  if (bytes.empty()) return bytes;
  for (std::uint64_t flips = random() % 3; flips > 0; --flips) {
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
  }
  if (random() % 3 == 0) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
  if (random() % 4 == 0) bytes.resize(random() % (bytes.size() + 9), static_cast<std::byte>(random()));
  return bytes;
}

// Whatever the bytes: the scalar variant's verdict, nothing outside the spans, |sums| within the members, and what is
// taken encodes to the same bytes.
TEST_P(RansTest, StaysInBoundsUnderMutation) {
  const std::uint64_t seed = fresh_seed();
  TG_SEED(seed);
  std::mt19937_64 random(seed);
  constexpr std::size_t kGuard = 64;
  constexpr std::int8_t kCanary = 0x5A;
  std::size_t taken_count = 0;
  for (int round = 0; round < 2000; ++round) {
    const int members = 1 + static_cast<int>(random() % 9);
    const Runs& runs = run_lists()[round % 100 == 0 ? 7 : 1 + random() % 6];  // 7: all lanes, and slow
    const std::size_t elements = total_of(runs);
    const double share = static_cast<double>(random() % 20) / 100;
    const Payload bytes =
        mutated(sums_rans(kernels(), sums_of(elements, members, random(), share), members, runs), random);
    AlignedArray<std::int8_t> memory(elements + 2 * kGuard), want(elements);
    for (std::int8_t& byte : memory) byte = kCanary;
    const auto sums = memory.span().subspan(kGuard, elements);
    const bool taken = kernels().decode_sums_rans(bytes, members, runs, sums);
    ASSERT_EQ(taken, scalar_variant().decode_sums_rans(bytes, members, runs, want.span()));
    for (std::size_t g = 0; g < kGuard; ++g) {
      ASSERT_EQ(memory[g], kCanary);
      ASSERT_EQ(memory[kGuard + elements + g], kCanary);
    }
    if (taken) {
      ++taken_count;
      ASSERT_TRUE(same_bytes<std::int8_t>(sums, want.span()));
      for (const std::int8_t sum : want) ASSERT_LE(std::abs(sum), members);
      ASSERT_EQ(sums_rans(kernels(), want, members, runs), bytes);
    }
  }
  EXPECT_GT(taken_count, 0U);
}

}  // namespace
}  // namespace tg::kernels::test

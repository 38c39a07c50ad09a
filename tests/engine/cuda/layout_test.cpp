#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "engine/cuda/operators/bodies/elementwise.h"
#include "engine/cuda/operators/bodies/transpose.h"
#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {

static bool operator==(const Bf16& a, const Bf16& b) { return a.bits == b.bits; }

namespace {

TEST(Bf16OnDevice, IsTheNearest) {
  struct Case {
    std::uint32_t value;
    std::uint16_t rounded;
  };
  for (const Case& each : {
           Case{0x00000000, 0x0000}, Case{0x80000000, 0x8000},                            // zeros
           Case{0x3f800000, 0x3f80}, Case{0xbf800000, 0xbf80},                            // ones
           Case{0x3f807fff, 0x3f80}, Case{0x3f808001, 0x3f81},                            // on either side of a half
           Case{0x3f808000, 0x3f80}, Case{0x3f818000, 0x3f82},                            // halves: to the even one
           Case{0xbf808000, 0xbf80}, Case{0xbf818000, 0xbf82}, Case{0x3fff8000, 0x4000},  // into the exponent
           Case{0x00000001, 0x0000}, Case{0x00008001, 0x0001},                            // denormals
           Case{0x007fffff, 0x0080},                            // the largest of them becomes normal
           Case{0x7f7f0000, 0x7f7f}, Case{0x7f7f7fff, 0x7f7f},  // the largest that stays finite
           Case{0x7f7f8000, 0x7f80}, Case{0xff7fffff, 0xff80},  // beyond it
           Case{0x7f800000, 0x7f80}, Case{0xff800000, 0xff80},  // infinities
           Case{0x7fc00000, 0x7fc0}, Case{0xffc12345, 0xffc1},  // no numbers
           Case{0x7f800001, 0x7fc0}, Case{0xffffffff, 0xffff},
       }) {
    const auto value = std::bit_cast<float>(each.value);
    EXPECT_EQ(bodies::to_bf16(value).bits, each.rounded) << std::hex << each.value;
    const float back = bodies::to_float({each.rounded});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(back), std::uint32_t{each.rounded} << 16);
    EXPECT_EQ(back != back, value != value) << std::hex << each.value;
  }
}

TEST(Bf16OnDevice, IsRoundedWideAndOneByOne) {
  for (const std::size_t count : {1, 3, 4, 1021}) {
    alignas(16) static float x[1024];
    const Values values = random_values(count, 20);
    std::copy(values.begin(), values.end(), x);
    std::vector<Bf16> expected(count), one_by_one(count);
    for (std::size_t i = 0; i < count; ++i) expected[i] = bodies::to_bf16(values[i]);
    const bodies::RoundToBf16 single{values.data(), one_by_one.data()};
    run(bodies::Each<1, bodies::RoundToBf16>{single, count});
    EXPECT_EQ(one_by_one, expected);
    alignas(8) static Bf16 wide[1024];
    std::fill(std::begin(wide), std::end(wide), Bf16{7});
    const bodies::RoundToBf16 operation{x, wide};
    ASSERT_TRUE(operation.allows_wide());
    run(bodies::Each<bodies::kWide, bodies::RoundToBf16>{operation, count});
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), wide));
    EXPECT_EQ(wide[count], Bf16{7});
  }
}

// Sides below, at and above a tile's, long and narrow ones in both directions, pixels of one and of many channels.
const Matrices kShapes[] = {{1, 1, 1},   {3, 1, 77},  {3, 77, 1},  {2, 3, 1025}, {2, 1025, 3},
                            {5, 3, 9},   {4, 9, 3},   {2, 16, 64}, {2, 31, 33},  {2, 33, 31},
                            {1, 32, 32}, {3, 64, 49}, {2, 20, 25}, {1, 65, 130}};

template <class From, class To>
void check(const Matrices& shape, const std::vector<From>& from, const std::vector<To>& converted) {
  std::vector<To> expected(from.size()), to(from.size());
  const std::size_t one = shape.rows * shape.columns;
  for (std::size_t m = 0; m < shape.count; ++m)
    for (std::size_t r = 0; r < shape.rows; ++r)
      for (std::size_t c = 0; c < shape.columns; ++c)
        expected[m * one + c * shape.rows + r] = converted[m * one + r * shape.columns + c];
  run_steps(bodies::Transpose<From, To>(shape, from.data(), to.data()));
  EXPECT_EQ(to, expected) << shape.count << " of " << shape.rows << " x " << shape.columns;
}

TEST(TransposeOnDevice, IsTheDefinition) {
  for (const Matrices& shape : kShapes) {
    const Values values = random_values(shape.count * shape.rows * shape.columns, 30);
    std::vector<Bf16> rounded;
    Values back;
    for (const float each : values) {
      rounded.push_back(bodies::to_bf16(each));
      back.push_back(bodies::to_float(rounded.back()));
    }
    check(shape, values, values);
    check(shape, values, rounded);
    check(shape, rounded, back);
  }
}

// What is no number stays none, and moves no other value.
TEST(TransposeOnDevice, MovesEveryBit) {
  Values values = random_values(33 * 40, 31);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  values[77] = -std::numeric_limits<float>::infinity();
  values[78] = -0.0F;
  std::vector<std::uint32_t> expected(values.size()), bits(values.size());
  for (std::size_t r = 0; r < 33; ++r)
    for (std::size_t c = 0; c < 40; ++c) expected[c * 33 + r] = std::bit_cast<std::uint32_t>(values[r * 40 + c]);
  Values to(values.size());
  run_steps(bodies::Transpose<float, float>({1, 33, 40}, values.data(), to.data()));
  for (std::size_t i = 0; i < to.size(); ++i) bits[i] = std::bit_cast<std::uint32_t>(to[i]);
  EXPECT_EQ(bits, expected);
}

// Threads of a warp touch as many banks as they are, where the tile is full: what makes the tile worth its way.
TEST(TransposeOnDevice, KeepsThreadsApart) {
  for (const Matrices& shape : {Matrices{1, 64, 64}, Matrices{1, 4, 512}, Matrices{1, 512, 8}, Matrices{1, 1, 2048}}) {
    const Values from(shape.rows * shape.columns);
    Values to(from.size());
    const bodies::Transpose<float, float> body(shape, from.data(), to.data());
    for (std::uint32_t first = 0; first < 1024; first += 32)
      for (const int step : {0, 1}) {
        std::uint32_t banks = 0;
        for (std::uint32_t i = first; i < first + 32; ++i) banks |= 1U << body.spot_of(step, i).place % 32;
        EXPECT_EQ(banks, 0xffffffffU) << shape.rows << " x " << shape.columns << ", step " << step;
      }
  }
}

}  // namespace
}  // namespace tg::engine::cuda

// Elementwise bodies on the device's grid against the CPU engine's functions, bit for bit, in packs and one by one,
// with ragged ends; and the sums by channel against doubles.
#include "engine/cuda/operators/bodies/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/elementwise.h"
#include "engine/cuda/operators/bodies/bias_gradient.h"
#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {
namespace {

// An array of the values, some floats behind an aligned address.
struct Array {
  Array(const Values& values, std::size_t behind) : held(values.size() + behind), first(behind) {
    std::copy(values.begin(), values.end(), held.begin() + static_cast<std::ptrdiff_t>(behind));
  }
  float* data() { return held.data() + first; }
  Values values() const { return {held.begin() + static_cast<std::ptrdiff_t>(first), held.end()}; }

  Values held;
  std::size_t first;
};

template <class Operation>
void run_each(std::size_t count, const Operation& operation) {
  operation.allows_wide() ? run(bodies::Each<bodies::kWide, Operation>{operation, count})
                          : run(bodies::Each<1, Operation>{operation, count});
}

class ElementwiseOnDevice : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  const std::size_t count_ = std::get<0>(GetParam()), behind_ = std::get<1>(GetParam());
  Array a_{coarse_values(count_, 1), behind_}, b_{coarse_values(count_, 2), behind_}, to_{Values(count_, -1), behind_};
};

TEST_P(ElementwiseOnDevice, EqualsTheCpu) {
  Values expected(count_);
  for (const bool relu : {false, true}) {
    cpu::add(a_.data(), b_.data(), expected.data(), count_, relu);
    const bodies::Add operation{a_.data(), b_.data(), to_.data(), relu};
    EXPECT_EQ(operation.allows_wide(), behind_ == 0);
    run_each(count_, operation);
    EXPECT_EQ(to_.values(), expected);
  }
  expected = a_.values();
  cpu::accumulate(b_.data(), expected.data(), count_);
  to_ = Array(a_.values(), behind_);
  run_each(count_, bodies::Add{to_.data(), b_.data(), to_.data(), false});
  EXPECT_EQ(to_.values(), expected);

  expected = b_.values();
  cpu::mask(a_.data(), expected.data(), count_);
  run_each(count_, bodies::ReluGradient{a_.data(), b_.data(), to_.data()});
  EXPECT_EQ(to_.values(), expected);
  to_ = Array(b_.values(), behind_);
  run_each(count_, bodies::ReluGradient{a_.data(), to_.data(), to_.data()});
  EXPECT_EQ(to_.values(), expected);
}

TEST_P(ElementwiseOnDevice, ReluKeepsItsSigns) {
  Values y = a_.values();
  for (float& value : y) value = std::max(value, 0.0F);
  run_each(count_, bodies::Relu{a_.data(), to_.data()});
  EXPECT_EQ(to_.values(), y);

  std::vector<std::uint8_t> signs(count_ + behind_, 2);
  to_ = Array(Values(count_, -1), behind_);
  run_each(count_, bodies::ReluSigns{a_.data(), to_.data(), signs.data() + behind_});
  EXPECT_EQ(to_.values(), y);
  for (std::size_t i = 0; i < count_; ++i) ASSERT_EQ(signs[behind_ + i], y[i] > 0 ? 1 : 0) << i;

  Values expected = b_.values();
  cpu::mask(y.data(), expected.data(), count_);
  run_each(count_, bodies::ReluGradientSigns{signs.data() + behind_, b_.data(), to_.data()});
  EXPECT_EQ(to_.values(), expected);
}

INSTANTIATE_TEST_SUITE_P(Lengths, ElementwiseOnDevice,
                         testing::Combine(testing::Values(1, 2, 3, 4, 5, 255, 1024, 1027, 4099),
                                          testing::Values(0, 1)));

TEST(ReluOnDevice, TurnsNotANumberIntoZero) {
  const Values x{std::nanf(""), -0.0F};
  Values y(2, -1);
  run_each(2, bodies::Relu{x.data(), y.data()});
  EXPECT_EQ(y, (Values{0, 0}));
}

const Planes kImagePlanes[] = {{1, 1, 1},   {1, 3, 1},      {2, 5, 3},   {7, 4, 1},  {3, 6, 4},
                               {9, 10, 25}, {64, 20, 1},    {130, 7, 2}, {5, 3, 49}, {33, 16, 1},
                               {70, 64, 9}, {1, 2, 10'000}, {200, 5, 64}};

TEST(AddBiasOnDevice, AddsByChannel) {
  for (const Planes& of : kImagePlanes)
    for (const std::size_t behind : {0, 1})
      for (const bool relu : {false, true}) {
        Array x(random_values(of.elements(), 3), behind);
        const Values bias = random_values(of.channels, 4);
        Values expected = x.values(), without = x.values();
        for (std::size_t i = 0; i < expected.size(); ++i) {
          expected[i] += bias[i / of.pixels % of.channels];
          if (relu) expected[i] = std::max(expected[i], 0.0F);
          if (relu) without[i] = std::max(without[i], 0.0F);
        }
        Array y(Values(of.elements(), -1), behind);
        run_each(of.elements(), bodies::AddBias(of, x.data(), bias.data(), relu, y.data()));
        EXPECT_EQ(y.values(), expected);
        run_each(of.elements(), bodies::AddBias(of, x.data(), nullptr, relu, x.data()));
        EXPECT_EQ(x.values(), without);
      }
}

TEST(BiasGradientOnDevice, AddsByChannelInAnOrderOfTheShape) {
  for (const Planes& of : kImagePlanes) {
    Values first;
    for (const std::size_t behind : {0, 1}) {
      Array dy(random_values(of.elements(), 5), behind);
      const bodies::ColumnParts parts(of);
      Array scratch(Values(parts.count * parts.columns, std::nanf("")), behind);
      const bodies::SumColumns<bodies::kWide> wide(parts, dy.data(), scratch.data());
      EXPECT_EQ(wide.allows_wide(), behind == 0 && of.channels * of.pixels % 4 == 0);
      wide.allows_wide() ? run(wide) : run(bodies::SumColumns<1>(parts, dy.data(), scratch.data()));
      Values gradient(of.channels);
      run_steps(bodies::SumChannels(of, scratch.data(), gradient.data()));
      std::vector<double> expected(of.channels), sizes(of.channels);
      const Values values = dy.values();
      for (std::size_t i = 0; i < values.size(); ++i) {
        expected[i / of.pixels % of.channels] += values[i];
        sizes[i / of.pixels % of.channels] += std::abs(values[i]);
      }
      // A few dozen roundings in a row, each at most 2^-24 of what has come together.
      for (std::size_t c = 0; c < of.channels; ++c) ASSERT_NEAR(gradient[c], expected[c], 2e-6 * sizes[c]) << c;
      if (first.empty()) first = gradient;
      EXPECT_EQ(gradient, first) << "alignment decides nothing";
    }
  }
}

TEST(BiasGradientOnDevice, MakesPartsForManyThreads) {
  const bodies::ColumnParts image({64, 64, 112 * 112}), rows({1024, 4096, 1}), one({1, 4096, 1});
  EXPECT_EQ(image.count, 1u);
  EXPECT_EQ(rows.count, 128u);
  EXPECT_EQ(one.count, 1u);
}

TEST(ChannelsOnDevice, AreJoinedAndSplit) {
  for (const Planes& part : kImagePlanes)
    for (const std::size_t first : {0u, 1u, 4u})
      for (const std::size_t behind : {0, 1}) {
        const std::size_t whole_channels = first + part.channels + 3, row = part.channels * part.pixels,
                          whole_row = whole_channels * part.pixels;
        Array from(random_values(part.elements(), 6), behind);
        const Values before = random_values(part.samples * whole_row, 7);
        Array whole(before, behind);
        Values expected = before;
        cpu::copy_rows({part.samples, row, row, whole_row}, from.data(), expected.data() + first * part.pixels);
        run_each(part.elements(),
                 bodies::CopyRows(row, from.data(), row, whole.data() + first * part.pixels, whole_row, false));
        EXPECT_EQ(whole.values(), expected);

        Array to(Values(part.elements(), 1), behind);
        run_each(part.elements(),
                 bodies::CopyRows(row, whole.data() + first * part.pixels, whole_row, to.data(), row, false));
        EXPECT_EQ(to.values(), from.values());
        Values sums = to.values();
        cpu::accumulate_rows({part.samples, row, whole_row, row}, expected.data() + first * part.pixels, sums.data());
        run_each(part.elements(),
                 bodies::CopyRows(row, whole.data() + first * part.pixels, whole_row, to.data(), row, true));
        EXPECT_EQ(to.values(), sums);
      }
}

}  // namespace
}  // namespace tg::engine::cuda

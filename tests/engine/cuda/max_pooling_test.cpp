// Max pooling on the device's grid against plain loops, bit for bit, and against the CPU engine's (oneDNN): its maxima
// and choices are equal, ties and what is not a number included; it adds up gradients in an order of its own blocks.
#include "engine/cuda/operators/bodies/max_pooling.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <limits>
#include <ostream>

#include "tests/engine/cuda/cpu_stage.h"
#include "tests/engine/cuda/grid.h"

namespace tg::engine::cuda {
namespace {

constexpr float kPoolingTolerance = 4e-6F;  // for the sum of up to nine gradients below 2, in float32

struct PoolingCase {
  int batch;
  ImageShape input;
  Window window;
};

void PrintTo(const PoolingCase& value, std::ostream* out) {
  *out << value.batch << " of " << value.input.channels << "x" << value.input.height << "x" << value.input.width
       << ", kernel " << value.window.kernel << ", stride " << value.window.stride;
}

PoolingShape shape_of(const PoolingCase& of) {
  const ImageShape output = output_of(engine::MaxPooling{of.window}, of.input);
  return {of.batch * of.input.channels, {of.input.height, of.input.width}, {output.height, output.width}, of.window};
}

struct Pooled {
  Values y, dx;
  std::vector<std::uint8_t> chosen;
};

Pooled run_on_grid(const PoolingShape& shape, const Values& x, const Values& dy, bool mask) {
  Pooled result{Values(dy.size()), Values(x.size()), std::vector<std::uint8_t>(dy.size())};
  run(bodies::MaxPooling(shape, x.data(), result.y.data(), result.chosen.data()));
  run(bodies::MaxPoolingGradient(shape, result.chosen.data(), dy.data(), mask ? result.y.data() : nullptr,
                                 result.dx.data()));
  return result;
}

class MaxPoolingOnDevice : public testing::TestWithParam<PoolingCase> {
 protected:
  const PoolingShape shape_ = shape_of(GetParam());
  const std::size_t inputs_ = static_cast<std::size_t>(shape_.planes) * shape_.input.height * shape_.input.width;
  const std::size_t outputs_ = static_cast<std::size_t>(shape_.planes) * shape_.output.height * shape_.output.width;
  const Values dy_ = random_values(outputs_, 2);

  void compare(const Values& x, bool mask) const {
    const auto& [batch, input, window] = GetParam();
    const CpuResult expected = run_on_cpu(engine::MaxPooling{window}, input, batch, x, dy_, mask);
    const Pooled result = run_on_grid(shape_, x, dy_, mask);
    EXPECT_EQ(result.y, expected.y);
    for (std::size_t i = 0; i < inputs_; ++i) ASSERT_NEAR(result.dx[i], expected.dx[i], kPoolingTolerance) << i;
  }
};

TEST_P(MaxPoolingOnDevice, EqualsTheCpu) {
  compare(random_values(inputs_, 1), false);
  compare(random_values(inputs_, 1), true);
}

TEST_P(MaxPoolingOnDevice, ChoosesTheFirstOfEquals) {
  compare(coarse_values(inputs_, 3), false);
  compare(coarse_values(inputs_, 3), true);
  compare(Values(inputs_, 1.0F), false);
}

TEST_P(MaxPoolingOnDevice, TakesOddValuesAsTheCpu) {
  constexpr float kChoice[] = {kNan, kNan, kInfinity, -kInfinity, -kInfinity, -FLT_MAX, -1, 1};
  Values x(inputs_);
  std::mt19937_64 random(5);
  for (float& each : x) each = kChoice[random() % std::size(kChoice)];
  compare(x, false);
}

TEST_P(MaxPoolingOnDevice, EqualsPlainLoops) {
  const Values x = coarse_values(inputs_, 4);
  const Pooled result = run_on_grid(shape_, x, dy_, false), masked = run_on_grid(shape_, x, dy_, true);
  const Window& window = shape_.window;
  Values dx(inputs_), masked_dx(inputs_);
  std::size_t at = 0;
  for (int plane = 0; plane < shape_.planes; ++plane)
    for (int r = 0; r < shape_.output.height; ++r)
      for (int c = 0; c < shape_.output.width; ++c, ++at) {
        float highest = -FLT_MAX;
        int place = 0;
        std::size_t source = inputs_;
        for (int k = 0; k < window.kernel * window.kernel; ++k) {
          const int row = r * window.stride - window.padding.top + k / window.kernel * window.dilation;
          const int column = c * window.stride - window.padding.left + k % window.kernel * window.dilation;
          if (row < 0 || column < 0 || row >= shape_.input.height || column >= shape_.input.width) continue;
          const std::size_t pixel =
              (static_cast<std::size_t>(plane) * shape_.input.height + row) * shape_.input.width + column;
          if (x[pixel] > highest) {
            highest = x[pixel];
            place = k;
            source = pixel;
          }
        }
        ASSERT_EQ(result.y[at], highest) << at;
        ASSERT_EQ(result.chosen[at], place) << at;
        if (source == inputs_) continue;
        dx[source] += dy_[at];
        if (highest > 0) masked_dx[source] += dy_[at];
      }
  EXPECT_EQ(result.dx, dx);
  EXPECT_EQ(masked.dx, masked_dx);
  Values alone(outputs_);
  run(bodies::MaxPooling(shape_, x.data(), alone.data(), nullptr));
  EXPECT_EQ(alone, result.y);
}

// Small images, asymmetric padding (CifarNet's SAME), `ceil` with and without a last window outside, dilation with
// windows that hold nothing of the image, overlaps, gaps between windows, several blocks.
INSTANTIATE_TEST_SUITE_P(
    Shapes, MaxPoolingOnDevice,
    testing::Values(PoolingCase{1, {1, 1, 1}, {}}, PoolingCase{2, {3, 8, 8}, {.kernel = 2, .stride = 2}},
                    PoolingCase{2, {5, 24, 24}, {.kernel = 3, .stride = 2, .padding = {0, 0, 1, 1}}},
                    PoolingCase{1, {2, 13, 9}, {.kernel = 3, .stride = 2}},
                    PoolingCase{2, {3, 7, 10}, {.kernel = 3, .stride = 2, .ceil = true}},
                    PoolingCase{2, {2, 6, 8}, {.kernel = 2, .stride = 3, .ceil = true}},
                    PoolingCase{1, {4, 11, 12}, {.kernel = 3, .stride = 2, .padding = {1, 1, 1, 1}, .ceil = true}},
                    PoolingCase{3, {2, 9, 7}, {.kernel = 3, .stride = 1, .padding = {1, 1, 1, 1}}},
                    PoolingCase{1, {2, 9, 8}, {.kernel = 5, .stride = 2, .padding = {2, 0, 1, 3}}},
                    PoolingCase{2, {2, 12, 11}, {.kernel = 3, .stride = 2, .dilation = 2, .padding = {1, 2, 3, 0}}},
                    PoolingCase{1, {1, 2, 2}, {.kernel = 2, .stride = 1, .dilation = 3, .padding = {1, 1, 2, 2}}},
                    PoolingCase{1, {2, 7, 7}, {.kernel = 2, .stride = 4}},
                    PoolingCase{1, {1, 4, 4}, {.kernel = 4, .stride = 4}}),
    [](const testing::TestParamInfo<PoolingCase>& each) { return "case_" + std::to_string(each.index); });

// What is not a number is passed over, and nothing is above the least float that a window begins with.
TEST(MaxPoolingWindow, SkipsNotANumber) {
  const PoolingCase one{1, {1, 4, 4}, {.kernel = 2, .stride = 2}};
  const Values x{kNan, 1,    2,          kNan,       3,    kNan, kNan,       4,  //
                 kNan, kNan, -kInfinity, -kInfinity, kNan, kNan, -kInfinity, -kInfinity};
  const Values dy{1, 2, 3, 4};
  const Pooled result = run_on_grid(shape_of(one), x, dy, false);
  EXPECT_EQ(result.y, (Values{3, 4, -FLT_MAX, -FLT_MAX}));
  EXPECT_EQ(result.chosen, (std::vector<std::uint8_t>{2, 3, 0, 0}));
  const CpuResult expected = run_on_cpu(engine::MaxPooling{one.window}, one.input, 1, x, dy);
  EXPECT_EQ(result.y, expected.y);
  EXPECT_EQ(result.dx, expected.dx);
}

}  // namespace
}  // namespace tg::engine::cuda

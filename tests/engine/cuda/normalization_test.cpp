// Local response normalization on the device's grid against the CPU engine's, bit for bit: the fixed radii and the body
// for any radius.
#include "engine/cuda/operators/bodies/normalization.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/engine/cuda/cpu_stage.h"

namespace tg::engine::cuda {
namespace {

struct NormalizationCase {
  int batch;
  ImageShape input;
  int radius, groups;
};

void PrintTo(const NormalizationCase& value, std::ostream* out) {
  *out << value.batch << " of " << value.input.channels << " channels in " << value.groups << " groups, radius "
       << value.radius;
}

class NormalizationOnDevice : public testing::TestWithParam<NormalizationCase> {
 protected:
  const NormalizationCase& of_ = GetParam();
  const LocalResponseNormalization layer_{
      .radius = of_.radius, .bias = 1.25F, .alpha = 0.1F, .beta = 0.75F, .groups = of_.groups};
  const NormalizationShape shape_{of_.batch, of_.input.channels, of_.input.height* of_.input.width, layer_};
  const std::size_t count_ = static_cast<std::size_t>(of_.batch) * of_.input.elements();
  const Values x_ = random_values(count_, 7), dy_ = random_values(count_, 8);
  const CpuResult expected_ = run_on_cpu(layer_, of_.input, of_.batch, x_, dy_);

  template <class Forward, class Backward>
  void compare() const {
    Values y(count_), dx(count_);
    run(Forward(shape_, x_.data(), y.data()));
    run(Backward(shape_, x_.data(), dy_.data(), dx.data()));
    EXPECT_EQ(y, expected_.y);
    EXPECT_EQ(dx, expected_.dx);
  }
};

TEST_P(NormalizationOnDevice, EqualsTheCpu) {
  compare<bodies::AnyNormalizationForward, bodies::AnyNormalizationGradient>();
  if (of_.radius == 2) compare<bodies::Normalization<2>, bodies::NormalizationGradient<2>>();
  if (of_.radius == 4) compare<bodies::Normalization<4>, bodies::NormalizationGradient<4>>();
}

// One channel, runs that end early, windows wider than a group, groups, one pixel, more than a block.
INSTANTIATE_TEST_SUITE_P(Shapes, NormalizationOnDevice,
                         testing::Values(NormalizationCase{1, {1, 1, 1}, 0, 1}, NormalizationCase{1, {1, 2, 3}, 4, 1},
                                         NormalizationCase{2, {3, 3, 3}, 2, 1}, NormalizationCase{2, {64, 5, 5}, 4, 1},
                                         NormalizationCase{1, {96, 4, 3}, 2, 2}, NormalizationCase{3, {17, 1, 1}, 4, 1},
                                         NormalizationCase{1, {16, 3, 7}, 2, 1}, NormalizationCase{2, {33, 2, 2}, 4, 3},
                                         NormalizationCase{1, {50, 3, 3}, 5, 1},
                                         NormalizationCase{1, {20, 2, 2}, 40, 2},
                                         NormalizationCase{1, {15, 20, 20}, 1, 5}),
                         [](const testing::TestParamInfo<NormalizationCase>& each) {
                           return "case_" + std::to_string(each.index);
                         });

}  // namespace
}  // namespace tg::engine::cuda

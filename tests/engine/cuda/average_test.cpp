// Averages on the device's grid against the CPU engine's, bit for bit.
#include "engine/cuda/operators/bodies/average.h"

#include <gtest/gtest.h>

#include <ostream>

#include "engine/cpu/windows.h"
#include "tests/engine/cuda/cpu_stage.h"

namespace tg::engine::cuda {
namespace {

struct AverageCase {
  int batch;
  ImageShape input;
  AdaptiveAverage layer;
};

void PrintTo(const AverageCase& value, std::ostream* out) {
  *out << value.batch << " of " << value.input.channels << "x" << value.input.height << "x" << value.input.width;
}

struct SpanArrays {
  explicit SpanArrays(const std::vector<cpu::Span>& of) {
    for (const cpu::Span& span : of) {
      first.push_back(static_cast<int>(span.first));
      last.push_back(static_cast<int>(span.last));
    }
  }
  Spans spans() const { return {first.data(), last.data()}; }
  std::vector<int> first, last;
};

class AverageOnDevice : public testing::TestWithParam<AverageCase> {};

TEST_P(AverageOnDevice, EqualsTheCpu) {
  const AverageCase& of = GetParam();
  const ImageShape output = output_of(of.layer, of.input);
  const SpanArrays rows(cpu::adaptive_spans(of.input.height, output.height));
  const SpanArrays columns(cpu::adaptive_spans(of.input.width, output.width));
  const AverageShape shape{of.batch * of.input.channels,
                           {of.input.height, of.input.width},
                           {output.height, output.width},
                           rows.spans(),
                           columns.spans()};
  const Values x = random_values(static_cast<std::size_t>(of.batch) * of.input.elements(), 5);
  const Values dy = random_values(static_cast<std::size_t>(of.batch) * output.elements(), 6);
  Values y(dy.size()), dx(x.size());
  run(bodies::Average(shape, x.data(), y.data()));
  run(bodies::AverageGradient(shape, dy.data(), dx.data()));
  const CpuResult expected = run_on_cpu(of.layer, of.input, of.batch, x, dy);
  EXPECT_EQ(y, expected.y);
  EXPECT_EQ(dx, expected.dx);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AverageOnDevice,
                         testing::Values(AverageCase{1, {1, 1, 1}, AdaptiveAverage{}},
                                         AverageCase{2, {9, 7, 7}, AdaptiveAverage{}},
                                         AverageCase{2, {3, 13, 12}, AdaptiveAverage{6, 6}},
                                         AverageCase{1, {2, 3, 4}, AdaptiveAverage{7, 7}}),
                         [](const testing::TestParamInfo<AverageCase>& each) {
                           return "case_" + std::to_string(each.index);
                         });

}  // namespace
}  // namespace tg::engine::cuda

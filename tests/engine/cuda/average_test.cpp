// Averages on the device's grid against the CPU engine's, bit for bit.
#include "engine/cuda/operators/bodies/average.h"

#include <gtest/gtest.h>

#include <ostream>

#include "engine/cpu/windows.h"
#include "tests/engine/cuda/cpu_stage.h"

namespace tg::engine::cuda {
namespace {

struct Case {
  int batch;
  ImageShape input;
  Attributes layer;  // AveragePooling or AdaptiveAverage
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.batch << " of " << value.input.channels << "x" << value.input.height << "x" << value.input.width;
}

struct SpanArrays {
  explicit SpanArrays(const std::vector<cpu::Span>& of) {
    for (const cpu::Span& span : of) {
      first.push_back(static_cast<int>(span.first));
      last.push_back(static_cast<int>(span.last));
      divisor.push_back(static_cast<int>(span.divisor));
    }
  }
  Spans spans() const { return {first.data(), last.data(), divisor.data()}; }
  std::vector<int> first, last, divisor;
};

SpanArrays rows_of(const Case& of, const ImageShape& output) {
  if (const auto* pooling = std::get_if<AveragePooling>(&of.layer))
    return SpanArrays(cpu::pooling_spans(of.input.height, output.height, pooling->window.padding.top,
                                         pooling->window.padding.bottom, *pooling));
  return SpanArrays(cpu::adaptive_spans(of.input.height, output.height));
}

SpanArrays columns_of(const Case& of, const ImageShape& output) {
  if (const auto* pooling = std::get_if<AveragePooling>(&of.layer))
    return SpanArrays(cpu::pooling_spans(of.input.width, output.width, pooling->window.padding.left,
                                         pooling->window.padding.right, *pooling));
  return SpanArrays(cpu::adaptive_spans(of.input.width, output.width));
}

class AverageOnDevice : public testing::TestWithParam<Case> {};

TEST_P(AverageOnDevice, EqualsTheCpu) {
  const Case& of = GetParam();
  const ImageShape output = output_of(of.layer, of.input);
  const SpanArrays rows = rows_of(of, output), columns = columns_of(of, output);
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

INSTANTIATE_TEST_SUITE_P(
    Shapes, AverageOnDevice,
    testing::Values(
        Case{1, {1, 1, 1}, AdaptiveAverage{}}, Case{2, {9, 7, 7}, AdaptiveAverage{}},
        Case{2, {3, 13, 12}, AdaptiveAverage{6, 6}}, Case{1, {2, 3, 4}, AdaptiveAverage{7, 7}},
        Case{2, {3, 8, 8}, AveragePooling{{.kernel = 2, .stride = 2}}},
        Case{1, {4, 9, 12}, AveragePooling{{.kernel = 3, .stride = 2, .padding = {0, 0, 1, 1}}}},
        Case{2, {3, 10, 7}, AveragePooling{{.kernel = 3, .stride = 2, .padding = {1, 1, 1, 1}, .ceil = true}}},
        Case{2, {3, 10, 7}, AveragePooling{{.kernel = 3, .stride = 2, .padding = {1, 0, 0, 1}, .ceil = true}, false}},
        Case{1, {2, 9, 8}, AveragePooling{{.kernel = 5, .stride = 1, .padding = {2, 2, 2, 2}}, false}},
        Case{1, {2, 9, 11}, AveragePooling{{.kernel = 2, .stride = 4}}}),
    [](const testing::TestParamInfo<Case>& each) { return "case_" + std::to_string(each.index); });

}  // namespace
}  // namespace tg::engine::cuda

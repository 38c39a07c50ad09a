#include "engine/cuda/operators/elementwise.h"

#include "engine/cuda/operators/bodies/bias_gradient.h"
#include "engine/cuda/operators/bodies/elementwise.h"
#include "engine/cuda/operators/launch.cuh"

namespace tg::engine::cuda {
namespace {

template <class Operation>
void launch_each(std::size_t count, const Operation& operation, cudaStream_t stream) {
  operation.allows_wide() ? launch(bodies::Each<bodies::kWide, Operation>{operation, count}, stream)
                          : launch(bodies::Each<1, Operation>{operation, count}, stream);
}

}  // namespace

void add_bias(const Planes& of, const float* x, const float* bias, bool relu, float* y, cudaStream_t stream) {
  launch_each(of.elements(), bodies::AddBias(of, x, bias, relu, y), stream);
}

std::size_t bias_scratch_floats(const Planes& of) {
  const bodies::ColumnParts parts(of);
  return parts.count * parts.columns;
}

void bias_gradient(const Planes& of, const float* dy, float* scratch, float* gradient, cudaStream_t stream) {
  const bodies::ColumnParts parts(of);
  const bodies::SumColumns<bodies::kWide> wide(parts, dy, scratch);
  wide.allows_wide() ? launch(wide, stream) : launch(bodies::SumColumns<1>(parts, dy, scratch), stream);
  launch_steps(bodies::SumChannels(of, scratch, gradient), stream);
}

void relu(std::size_t count, const float* x, float* y, cudaStream_t stream) {
  launch_each(count, bodies::Relu{x, y}, stream);
}

void relu_gradient(std::size_t count, const float* y, const float* dy, float* dx, cudaStream_t stream) {
  launch_each(count, bodies::ReluGradient{y, dy, dx}, stream);
}

void relu_signs(std::size_t count, const float* x, float* y, std::uint8_t* signs, cudaStream_t stream) {
  launch_each(count, bodies::ReluSigns{x, y, signs}, stream);
}

void relu_gradient_signs(std::size_t count, const std::uint8_t* signs, const float* dy, float* dx,
                         cudaStream_t stream) {
  launch_each(count, bodies::ReluGradientSigns{signs, dy, dx}, stream);
}

void add(std::size_t count, const float* a, const float* b, bool relu, float* y, cudaStream_t stream) {
  launch_each(count, bodies::Add{a, b, y, relu}, stream);
}

void accumulate(std::size_t count, const float* from, float* to, cudaStream_t stream) {
  launch_each(count, bodies::Add{to, from, to, false}, stream);
}

void join_channels(const Planes& part, std::size_t first, std::size_t whole_channels, const float* from, float* whole,
                   cudaStream_t stream) {
  const std::size_t row = part.channels * part.pixels;
  launch_each(part.elements(),
              bodies::CopyRows(row, from, row, whole + first * part.pixels, whole_channels * part.pixels, false),
              stream);
}

void split_channels(const Planes& part, std::size_t first, std::size_t whole_channels, const float* whole,
                    bool accumulates, float* to, cudaStream_t stream) {
  const std::size_t row = part.channels * part.pixels;
  launch_each(part.elements(),
              bodies::CopyRows(row, whole + first * part.pixels, whole_channels * part.pixels, to, row, accumulates),
              stream);
}

}  // namespace tg::engine::cuda

#include "tests/gpu/step.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/graph/graph_json.h"
#include "tests/gpu/report.h"

namespace tg::gpu {

std::unique_ptr<engine::Engine> Engines::make(const engine::Model& model, engine::EngineOptions options) {
  std::string& choices = choices_[{engine::graph_json(model), options.batch}];
  options.choices = choices;
  auto made = accelerator_.make_engine(model, options);
  if (!made) throw Wrong(made.error().message);
  if (choices.empty()) choices = (*made)->choices();
  last_ = "  choices: " + (*made)->choices();
  std::replace(last_.begin(), last_.end(), '\n', ';');
  return std::move(made).value();
}

AlignedArray<float> unwritten(const engine::SegmentTable& segments) {
  AlignedArray<float> flat(segments.padded_count());
  for (const engine::Segment& segment : segments.segments())
    for (std::size_t i = 0; i < segment.element_count; ++i) flat[segment.offset + i] = std::nanf("");
  return flat;
}

std::span<const float> of_segment(const AlignedArray<float>& flat, const engine::Segment& segment) {
  return flat.span().subspan(segment.offset, segment.element_count);
}

Step step_of(engine::Engine& engine, kernels::MemorySpace& space, std::span<const float> parameters,
             const engine::Batch& batch, float factor) {
  const std::unique_ptr<kernels::TensorKernels> kernels = space.make_kernels();
  const kernels::MemoryArray at = copied_to(space, *kernels, parameters);
  kernels::MemoryArray gradient = copied_to(space, *kernels, unwritten(engine.segments()).span());
  Step step;
  step.loss = engine.forward(at.floats().address(), batch);
  step.statistics = unwritten(engine.statistics());
  engine.read_statistics(step.statistics.data());
  engine.backward(factor, gradient.floats().address(), ignore);
  step.gradient = on_host(*kernels, gradient.floats());
  return step;
}

double norm(std::span<const float> values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

double distance(std::span<const float> ours, std::span<const float> theirs) {
  double squares = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = static_cast<double>(ours[i]) - theirs[i];
    squares += difference * difference;
  }
  if (std::isnan(squares)) return std::numeric_limits<double>::infinity();
  if (squares == 0) return 0;
  return std::sqrt(squares) / norm(theirs);
}

}  // namespace tg::gpu

#include "engine/graph/flops.h"

#include <numeric>

#include "engine/graph/shapes.h"

namespace tg::engine {

std::vector<double> multiply_adds(const Model& model) {
  if (model.operators.empty()) return {};
  const std::vector<ImageShape> shapes = infer_shapes(model).value();
  std::vector<double> by_segment(model.segments.size(), 0.0);
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Attributes& attributes = model.operators[i].attributes;
    const ImageShape& made = shapes[i + 1];
    const auto weigh = [&](std::size_t weight) {
      by_segment[weight] = static_cast<double>(model.segments[weight].element_count) * made.height * made.width;
    };
    if (const auto* convolution = std::get_if<Convolution>(&attributes)) weigh(convolution->weight);
    if (const auto* dense = std::get_if<Dense>(&attributes)) weigh(dense->weight);
  }
  return by_segment;
}

double training_operations(const Model& model) {
  const std::vector<double> forward = multiply_adds(model);
  return 6 * std::accumulate(forward.begin(), forward.end(), 0.0);
}

}  // namespace tg::engine

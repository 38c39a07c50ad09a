#include "daemon/forecast/flops.h"

#include <numeric>
#include <variant>

namespace tg::daemon {
namespace {

int outputs(int inputs, int kernel, int stride, int padding) { return (inputs + padding - kernel) / stride + 1; }

}  // namespace

std::vector<double> multiply_adds(const engine::Model& model) {
  if (!model.trainable()) return {};
  std::vector<double> by_segment(model.segments.size(), 0.0);
  int height = model.input.height;  // images are square
  for (const engine::Layer& layer : model.layers) {
    if (const auto* convolution = std::get_if<engine::Convolution>(&layer)) {
      height =
          outputs(height, convolution->kernel, convolution->stride, convolution->pad_before + convolution->pad_after);
      by_segment[convolution->weight] =
          static_cast<double>(model.segments[convolution->weight].element_count) * height * height;
    } else if (const auto* pooling = std::get_if<engine::MaxPooling>(&layer)) {
      height = outputs(height, pooling->kernel, pooling->stride, pooling->pad_before + pooling->pad_after);
    } else if (const auto* dense = std::get_if<engine::Dense>(&layer)) {
      by_segment[dense->weight] = static_cast<double>(model.segments[dense->weight].element_count);
    }
  }
  return by_segment;
}

double training_operations(const engine::Model& model) {
  const std::vector<double> forward = multiply_adds(model);
  return 6 * std::accumulate(forward.begin(), forward.end(), 0.0);
}

}  // namespace tg::daemon

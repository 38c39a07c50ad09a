#include "engine/cuda/stages/stage.h"

namespace tg::engine::cuda {
namespace {

// All that the libraries' calls for a layer depend on, but for the addresses.
std::string text_of_layer(const StageContext& context) {
  std::string text;
  const auto add = [&](const auto... numbers) { ((text += std::to_string(numbers) + " "), ...); };
  if (const auto* convolution = std::get_if<Convolution>(&context.op().attributes)) {
    const Window& window = convolution->window;
    const Padding& padding = window.padding;
    text = "convolution ";
    add(convolution->groups, window.kernel, window.stride, window.dilation, padding.top, padding.left, padding.bottom,
        padding.right);
  } else if (const auto* dense = std::get_if<Dense>(&context.op().attributes)) {
    text = "dense ";
    add(dense->bias.has_value());
  } else {
    return {};
  }
  const ImageShape &input = context.inputs[0].shape, &output = context.output.shape;
  add(context.plan.relu, context.batch, input.channels, input.height, input.width, output.channels, output.height,
      output.width);
  return text;
}

}  // namespace

Stage::Stage(const StageContext& context) : StageOf(context), layer_(text_of_layer(context)) {}

Planes planes_of(const StageContext& context, const ImageShape& shape) {
  return {static_cast<std::size_t>(context.batch), static_cast<std::size_t>(shape.channels),
          static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width)};
}

}  // namespace tg::engine::cuda

#include "engine/cpu/network.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace tg::engine::cpu {
namespace {

// "conv1" of "conv1.weight".
std::string layer_name(const SegmentTable& segments, std::size_t weight) {
  const std::string& name = segments[weight].name;
  return name.substr(0, name.rfind('.'));
}

std::span<float> values_of(const dnnl::memory& memory) {
  return {static_cast<float*>(memory.get_data_handle()), memory.get_desc().get_size() / sizeof(float)};
}

}  // namespace

Network::Network(Device& device, const Model& model, int batch, bool training)
    : device_(device), model_(model), batch_(batch), training_(training) {
  const dnnl::memory::dims dims{batch, model.input.channels, model.input.height, model.input.width};
  images_ = device.view(row_desc(dims));
  input_.value = device.allocate(image_desc(dims));
  load_images_ = Operation::make_reorder(device, "load of the images", images_, input_.value);

  const std::vector<Layer>& layers = model.layers;
  const auto is_relu = [&](std::size_t i) { return i < layers.size() && std::holds_alternative<Relu>(layers[i]); };
  const auto is_pooling = [&](std::size_t i) {
    return i < layers.size() && std::holds_alternative<MaxPooling>(layers[i]);
  };
  bool mask_left_to_pooling = false;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string place = "layer " + std::to_string(i + 1);
    if (const auto* convolution = std::get_if<Convolution>(&layers[i])) {
      const bool relu = is_relu(i + 1);
      mask_left_to_pooling = relu && is_pooling(i + 2);
      add(make_convolution(context(layer_name(model.segments, convolution->weight)), *convolution, relu,
                           relu && !mask_left_to_pooling));
      if (relu) ++i;
    } else if (const auto* pooling = std::get_if<MaxPooling>(&layers[i])) {
      add(make_max_pooling(context(place + " max pooling"), *pooling, mask_left_to_pooling));
      mask_left_to_pooling = false;
    } else if (const auto* normalization = std::get_if<LocalResponseNormalization>(&layers[i])) {
      add(make_normalization(context(place + " normalization"), *normalization));
    } else if (const auto* dense = std::get_if<Dense>(&layers[i])) {
      if (context("").input.value.get_desc().dims().size() == 4) add(make_flatten(context(place + " flatten")));
      const bool relu = is_relu(i + 1);
      add(make_dense(context(layer_name(model.segments, dense->weight)), *dense, relu));
      if (relu) ++i;
    } else {
      add(make_relu(context(place + " relu")));
    }
  }
  TG_CHECK(values_of(operators_.back()->output().value).size() == static_cast<std::size_t>(batch) * model.classes);
}

void Network::add(std::unique_ptr<Operator> next) { operators_.push_back(std::move(next)); }

OperatorContext Network::context(const std::string& name) const {
  const Activation& input = operators_.empty() ? input_ : operators_.back()->output();
  return {device_, model_.segments, name, input, training_, !operators_.empty()};
}

std::span<const float> Network::forward(const float* parameters, const float* images, int count,
                                        const Engine::SegmentGate& gate) {
  TG_CHECK(count >= 0 && count <= batch_, count, batch_);
  if (count < batch_) {
    const std::size_t used = static_cast<std::size_t>(count) * model_.input.elements();
    if (short_batch_.size() == 0) {
      short_batch_ = AlignedArray<float>(static_cast<std::size_t>(batch_) * model_.input.elements());
    }
    std::copy(images, images + used, short_batch_.begin());
    std::fill(short_batch_.begin() + used, short_batch_.end(), 0.0F);
    images = short_batch_.data();
  }
  point(images_, images);
  load_images_.run();
  for (const auto& each : operators_) {
    const SegmentRange range = each->segments();
    if (gate && !range.empty()) gate(range.first, range.last);
    each->forward(parameters);
  }
  return values_of(operators_.back()->output().value);
}

std::span<float> Network::logits_gradient() { return values_of(operators_.back()->output().gradient); }

void Network::backward(float* gradients, const Engine::SegmentSink& sink) {
  for (auto each = operators_.rbegin(); each != operators_.rend(); ++each) {
    (*each)->backward_parameters(gradients);
    const SegmentRange range = (*each)->segments();
    if (!range.empty()) sink(range.first, range.last);
    (*each)->backward_data();
  }
}

}  // namespace tg::engine::cpu

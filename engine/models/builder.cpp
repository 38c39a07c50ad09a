#include "engine/models/builder.h"

#include <algorithm>

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

struct SamePadding {
  int before, after, outputs;
};

SamePadding same_padding(int inputs, int kernel, int stride) {
  const int outputs = (inputs + stride - 1) / stride;
  const int total = std::max((outputs - 1) * stride + kernel - inputs, 0);
  return {total / 2, total - total / 2, outputs};
}

}  // namespace

ModelBuilder::ModelBuilder(std::string name, ImageShape input) : shape_(input) {
  TG_CHECK(input.height == input.width, input.height, input.width);
  model_.name = std::move(name);
  model_.input = input;
}

std::size_t ModelBuilder::add_segment(const std::string& name, std::vector<std::int64_t> shape,
                                      const Parameters& parameters, bool weight) {
  Segment segment;
  segment.name = name + (weight ? ".weight" : ".bias");
  segment.element_count = 1;
  for (const std::int64_t extent : shape) segment.element_count *= static_cast<std::size_t>(extent);
  segment.shape = std::move(shape);
  segment.initial_deviation = weight ? parameters.weight_deviation : 0;
  segment.initial_value = weight ? 0 : parameters.bias_value;
  segment.decays = weight && parameters.decays;
  segments_.push_back(std::move(segment));
  return segments_.size() - 1;
}

ModelBuilder& ModelBuilder::convolution(const std::string& name, int out_channels, int kernel,
                                        const Parameters& parameters) {
  const SamePadding padding = same_padding(shape_.height, kernel, 1);
  Convolution layer{shape_.channels, out_channels, kernel, 1, padding.before, padding.after, 0, 0};
  layer.weight = add_segment(name, {out_channels, shape_.channels, kernel, kernel}, parameters, true);
  layer.bias = add_segment(name, {out_channels}, parameters, false);
  model_.layers.emplace_back(layer);
  shape_ = {out_channels, padding.outputs, padding.outputs};
  return *this;
}

ModelBuilder& ModelBuilder::max_pooling(int kernel, int stride) {
  const SamePadding padding = same_padding(shape_.height, kernel, stride);
  model_.layers.emplace_back(MaxPooling{kernel, stride, padding.before, padding.after});
  shape_ = {shape_.channels, padding.outputs, padding.outputs};
  return *this;
}

ModelBuilder& ModelBuilder::normalization(const LocalResponseNormalization& layer) {
  model_.layers.emplace_back(layer);
  return *this;
}

ModelBuilder& ModelBuilder::relu() {
  model_.layers.emplace_back(Relu{});
  return *this;
}

ModelBuilder& ModelBuilder::dense(const std::string& name, int out_features, const Parameters& parameters) {
  const int in_features = static_cast<int>(shape_.elements());
  Dense layer{in_features, out_features, 0, 0};
  layer.weight = add_segment(name, {out_features, in_features}, parameters, true);
  layer.bias = add_segment(name, {out_features}, parameters, false);
  model_.layers.emplace_back(layer);
  shape_ = {out_features, 1, 1};
  return *this;
}

Model ModelBuilder::build() {
  const auto* logits = model_.layers.empty() ? nullptr : std::get_if<Dense>(&model_.layers.back());
  TG_CHECK(logits != nullptr, model_.name);
  segments_[logits->weight].last_layer = true;
  segments_[logits->bias].last_layer = true;
  model_.classes = logits->out_features;
  model_.segments = SegmentTable(std::move(segments_));
  return std::move(model_);
}

}  // namespace tg::engine

#include "engine/models/builder.h"

#include <algorithm>
#include <cmath>

#include "engine/graph/shapes.h"
#include "kernels/base/check.h"

namespace tg::engine {
namespace {

// The deviation of a standard normal that is cut at two deviations.
constexpr double kCutDeviation = 0.8796256610342398;

struct SamePadding {
  int before, after;
};

SamePadding same_padding(int inputs, int kernel, int stride, int dilation) {
  const int outputs = (inputs + stride - 1) / stride;
  const int total = std::max((outputs - 1) * stride + dilation * (kernel - 1) + 1 - inputs, 0);
  return {total / 2, total - total / 2};
}

}  // namespace

Parameters uniform_parameters(int fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max(fan_in, 1)));
  return {.weight_bound = bound, .bias_bound = bound, .decays = true};
}

Parameters normal_parameters(double deviation) {
  return {.weight_deviation = deviation / kCutDeviation, .decays = true};
}

Parameters he_parameters(int fan) { return normal_parameters(std::sqrt(2.0 / std::max(fan, 1))); }

ModelBuilder::ModelBuilder(std::string name, ImageShape input) : shapes_{input} {
  model_.name = std::move(name);
  model_.input = input;
}

ModelBuilder& ModelBuilder::from(std::size_t value) {
  TG_CHECK(problem_ || value < shapes_.size(), model_.name, value);
  if (!problem_) place_ = value;
  return *this;
}

ModelBuilder& ModelBuilder::append(const std::string& name, Attributes attributes, std::vector<std::size_t> inputs) {
  if (problem_) return *this;
  std::vector<ImageShape> taken;
  for (const std::size_t value : inputs) taken.push_back(shapes_[value]);
  Operator one{name, attributes, std::move(inputs)};
  const Result<ImageShape> made = infer_shape(one, taken);
  if (!made) {
    problem_ = Error{made.error().kind, model_.name + ": " + made.error().message};
    return *this;
  }
  model_.operators.push_back(std::move(one));
  shapes_.push_back(*made);
  place_ = shapes_.size() - 1;
  return *this;
}

ModelBuilder& ModelBuilder::append(const std::string& kind, Attributes attributes) {
  return append(kind + " " + std::to_string(model_.operators.size() + 1), attributes, {place_});
}

std::size_t ModelBuilder::add_segment(const std::string& name, std::vector<std::int64_t> shape,
                                      const Parameters& parameters, bool weight) {
  segments_.push_back({.name = name + (weight ? ".weight" : ".bias"),
                       .shape = std::move(shape),
                       .initial_deviation = weight ? parameters.weight_deviation : 0,
                       .initial_bound = weight ? parameters.weight_bound : parameters.bias_bound,
                       .initial_value = weight ? 0 : parameters.bias_value,
                       .decays = weight && parameters.decays});
  return segments_.size() - 1;
}

std::size_t ModelBuilder::add_statistic(const std::string& name, double value) {
  statistics_.push_back({.name = name, .shape = {shape().channels}, .initial_value = value});
  return statistics_.size() - 1;
}

Window ModelBuilder::window(int kernel, int stride, int padding, int dilation) const {
  Window window{.kernel = kernel, .stride = stride, .dilation = dilation, .padding = {}};
  if (padding == kSame) {
    const SamePadding rows = same_padding(shape().height, kernel, stride, dilation);
    const SamePadding columns = same_padding(shape().width, kernel, stride, dilation);
    window.padding = {rows.before, columns.before, rows.after, columns.after};
  } else {
    window.padding = {padding, padding, padding, padding};
  }
  return window;
}

// The operator is checked first: without a valid input its segments have no sensible shape.
ModelBuilder& ModelBuilder::convolution(const std::string& name, const Filters& filters, const Parameters& parameters) {
  const int in_channels = shape().channels;
  append(name,
         Convolution{.out_channels = filters.count,
                     .groups = filters.groups,
                     .window = window(filters.kernel, filters.stride, filters.padding, filters.dilation)},
         {place_});
  if (problem_) return *this;
  auto& layer = std::get<Convolution>(model_.operators.back().attributes);
  layer.weight = add_segment(name, {filters.count, in_channels / filters.groups, filters.kernel, filters.kernel},
                             parameters, true);
  if (filters.bias) layer.bias = add_segment(name, {filters.count}, parameters, false);
  return *this;
}

ModelBuilder& ModelBuilder::dense(const std::string& name, int out_features, const Parameters& parameters, bool bias) {
  flatten();
  const int in_features = shape().channels;
  append(name, Dense{.out_features = out_features}, {place_});
  if (problem_) return *this;
  auto& layer = std::get<Dense>(model_.operators.back().attributes);
  layer.weight = add_segment(name, {out_features, in_features}, parameters, true);
  if (bias) layer.bias = add_segment(name, {out_features}, parameters, false);
  return *this;
}

ModelBuilder& ModelBuilder::batch_normalization(const std::string& name, const Normalized& how) {
  append(name, BatchNormalization{.epsilon = how.epsilon, .momentum = how.momentum}, {place_});
  if (problem_) return *this;
  auto& layer = std::get<BatchNormalization>(model_.operators.back().attributes);
  const std::int64_t channels = shape().channels;
  if (how.gamma) {
    layer.gamma = add_segment(name, {channels}, {}, true);
    segments_.back().initial_value = 1;
  }
  layer.beta = add_segment(name, {channels}, {}, false);
  layer.mean = add_statistic(name + ".running_mean", 0);
  layer.variance = add_statistic(name + ".running_var", 1);
  return *this;
}

ModelBuilder& ModelBuilder::normalization(const LocalResponseNormalization& layer) {
  return append("normalization", layer);
}

ModelBuilder& ModelBuilder::max_pooling(const Pool& pool) {
  MaxPooling layer{window(pool.kernel, pool.stride, pool.padding, 1)};
  layer.window.ceil = pool.ceil;
  return append("max pooling", layer);
}

// Adds nothing if the image already has that size.
ModelBuilder& ModelBuilder::adaptive_average(int height, int width) {
  if (shape().height == height && shape().width == width) return *this;
  return append("average", AdaptiveAverage{height, width});
}

ModelBuilder& ModelBuilder::relu() { return append("relu", Relu{}); }

ModelBuilder& ModelBuilder::dropout(double probability) { return append("dropout", Dropout{probability}); }

ModelBuilder& ModelBuilder::concat(const std::vector<std::size_t>& values) {
  return append("concat " + std::to_string(model_.operators.size() + 1), Concat{}, values);
}

ModelBuilder& ModelBuilder::add(std::size_t value) {
  return append("add " + std::to_string(model_.operators.size() + 1), Add{}, {place_, value});
}

ModelBuilder& ModelBuilder::flatten() {
  if (shape().height == 1 && shape().width == 1) return *this;
  return append("flatten", Flatten{});
}

ModelBuilder& ModelBuilder::auxiliary_head(double weight) {
  return append("auxiliary head", CrossEntropy{.weight = weight, .auxiliary = true});
}

Result<Model> ModelBuilder::build(double label_smoothing) {
  append("head", CrossEntropy{});
  if (problem_) return *problem_;
  for (Operator& one : model_.operators)
    if (auto* head = std::get_if<CrossEntropy>(&one.attributes)) head->smoothing = label_smoothing;
  const std::size_t logits = model_.operators.back().inputs[0];
  model_.classes = shapes_[logits].channels;
  if (logits > 0)
    for (const std::size_t segment : segments_of(model_.operators[logits - 1])) segments_[segment].last_layer = true;
  model_.segments = SegmentTable(std::move(segments_));
  model_.statistics = SegmentTable(std::move(statistics_));
  if (const Result<std::vector<ImageShape>> sound = infer_shapes(model_); !sound) return sound.error();
  return std::move(model_);
}

}  // namespace tg::engine

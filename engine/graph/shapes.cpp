#include "engine/graph/shapes.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include "kernels/base/joined.h"

namespace tg::engine {
namespace {

// Elements of one sample's value: sizes stay far from the limits of an int.
constexpr std::uint64_t kMaxElements = 1u << 30;

bool is_row(const ImageShape& shape) { return shape.height == 1 && shape.width == 1; }

std::string text_of(std::span<const ImageShape> shapes) {
  return joined(shapes, " and ", [](const ImageShape& shape) { return text_of(shape); });
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  return joined(shape, "x", [](std::int64_t extent) { return std::to_string(extent); });
}

// The shape that an operator makes, or the reason why it cannot, which continues "conv1 takes 3x8x8: ".
struct Made {
  Made(ImageShape of) : shape(of) {}                  // NOLINT(google-explicit-constructor)
  Made(std::string why) : problem(std::move(why)) {}  // NOLINT(google-explicit-constructor)
  Made(const char* why) : problem(why) {}             // NOLINT(google-explicit-constructor)
  ImageShape shape;
  std::string problem;
};

// The number of positions of a window along one side; 0 or less if it does not fit.
int positions(int inputs, int before, int after, const Window& window) {
  const int reach = window.dilation * (window.kernel - 1) + 1;
  const int space = inputs + before + after - reach;
  if (space < 0) return 0;
  int count = (space + (window.ceil ? window.stride - 1 : 0)) / window.stride + 1;
  if (window.ceil && (count - 1) * window.stride >= inputs + before) --count;
  return count;
}

Made slide(const Window& window, int channels, const ImageShape& input) {
  const Padding& pad = window.padding;
  if (window.kernel < 1 || window.stride < 1 || window.dilation < 1) return "kernel, stride and dilation are 1 or more";
  const int reach = window.dilation * (window.kernel - 1) + 1;
  for (const int edge : {pad.top, pad.left, pad.bottom, pad.right})
    if (edge < 0 || edge >= reach) return "a padding of " + std::to_string(edge) + " holds a whole window";
  const ImageShape output{channels, positions(input.height, pad.top, pad.bottom, window),
                          positions(input.width, pad.left, pad.right, window)};
  if (output.height < 1 || output.width < 1)
    return "a window of " + std::to_string(reach) +
           " pixels does not fit in; larger images are needed, or another model";
  return output;
}

struct Inference {
  std::span<const ImageShape> inputs;
  const ImageShape& first() const { return inputs[0]; }

  Made operator()(const Convolution& one) const {
    if (one.out_channels < 1 || one.groups < 1) return "filters and groups are 1 or more";
    if (first().channels % one.groups != 0 || one.out_channels % one.groups != 0)
      return std::to_string(one.groups) + " groups do not divide its channels and " + std::to_string(one.out_channels) +
             " filters";
    return slide(one.window, one.out_channels, first());
  }
  Made operator()(const BatchNormalization&) const { return first(); }
  Made operator()(const LocalResponseNormalization& one) const {
    if (one.groups < 1 || first().channels % one.groups != 0)
      return std::to_string(one.groups) + " groups do not divide its channels";
    return first();
  }
  Made operator()(const MaxPooling& one) const { return slide(one.window, first().channels, first()); }
  Made operator()(const AdaptiveAverage& one) const {
    if (one.height < 1 || one.width < 1) return "parts are 1 or more";
    return ImageShape{first().channels, one.height, one.width};
  }
  Made operator()(const Relu&) const { return first(); }
  Made operator()(const Dense& one) const {
    if (!is_row(first())) return "a dense layer takes rows; flatten them first";
    if (one.out_features < 1) return "its features are 1 or more";
    return ImageShape{one.out_features, 1, 1};
  }
  Made operator()(const Dropout& one) const {
    if (!is_row(first())) return "dropout takes rows; flatten them first";
    if (!(one.probability >= 0 && one.probability < 1)) return "its probability is 0 or more and below 1";
    return first();
  }
  Made operator()(const Concat&) const {
    ImageShape all = first();
    for (const ImageShape& other : inputs.subspan(1)) {
      if (other.height != all.height || other.width != all.width) return "only channels may differ";
      all.channels += other.channels;
    }
    return all;
  }
  Made operator()(const Add&) const {
    if (inputs[1] != first()) return "both have to be alike";
    return first();
  }
  Made operator()(const Flatten&) const { return ImageShape{static_cast<int>(first().elements()), 1, 1}; }
  Made operator()(const CrossEntropy& one) const {
    if (!is_row(first())) return "logits are a row";
    if (!(one.weight > 0)) return "the weight of a head is above 0";
    if (!(one.smoothing >= 0 && one.smoothing < 1)) return "label smoothing is 0 or more and below 1";
    return ImageShape{1, 1, 1};
  }
};

Error misfit(const Operator& one, std::span<const ImageShape> inputs, const std::string& problem) {
  return {ErrorKind::kInvalidJob, one.name + " takes " + text_of(inputs) + ": " + problem};
}

bool takes(const Attributes& attributes, std::size_t count) {
  if (std::holds_alternative<Concat>(attributes)) return count >= 1;
  return count == (std::holds_alternative<Add>(attributes) ? 2u : 1u);
}

// Checks that the operators use each segment and statistic once, in order and with the right shape.
class TableCheck {
 public:
  explicit TableCheck(const Model& model) : model_(model) {}

  Status follow(const Operator& one, const ImageShape& input) {
    if (const auto* layer = std::get_if<Convolution>(&one.attributes)) {
      const std::int64_t kernel = layer->window.kernel;
      return both(one, layer->weight, {layer->out_channels, input.channels / layer->groups, kernel, kernel},
                  layer->bias, {layer->out_channels});
    }
    if (const auto* layer = std::get_if<Dense>(&one.attributes))
      return both(one, layer->weight, {layer->out_features, input.channels}, layer->bias, {layer->out_features});
    if (const auto* layer = std::get_if<BatchNormalization>(&one.attributes)) {
      const std::vector<std::int64_t> channels{input.channels};
      if (layer->gamma) {
        if (Status status = next(one, model_.segments, next_segment_, *layer->gamma, channels); !status) return status;
      }
      if (Status status = next(one, model_.segments, next_segment_, layer->beta, channels); !status) return status;
      if (Status status = next(one, model_.statistics, next_statistic_, layer->mean, channels); !status) return status;
      return next(one, model_.statistics, next_statistic_, layer->variance, channels);
    }
    return {};
  }
  Status end() const {
    if (next_segment_ == model_.segments.size() && next_statistic_ == model_.statistics.size()) return {};
    return Error{ErrorKind::kInvalidJob, model_.name + " has segments or statistics that no operator uses"};
  }

 private:
  Status both(const Operator& one, std::size_t weight, const std::vector<std::int64_t>& shape,
              std::optional<std::size_t> bias, const std::vector<std::int64_t>& bias_shape) {
    if (Status status = next(one, model_.segments, next_segment_, weight, shape); !status) return status;
    return bias ? next(one, model_.segments, next_segment_, *bias, bias_shape) : Status();
  }
  static Status next(const Operator& one, const SegmentTable& table, std::size_t& expected, std::size_t index,
                     const std::vector<std::int64_t>& shape) {
    if (index != expected || index >= table.size())
      return Error{ErrorKind::kInvalidJob, one.name + " uses segment " + std::to_string(index) + " where " +
                                               std::to_string(expected) + " is next"};
    ++expected;
    if (table[index].shape != shape)
      return Error{ErrorKind::kInvalidJob, one.name + " needs " + table[index].name + " of " + text_of(shape) +
                                               ", and it is " + text_of(table[index].shape)};
    return {};
  }

  const Model& model_;
  std::size_t next_segment_ = 0, next_statistic_ = 0;
};

}  // namespace

std::string text_of(const ImageShape& shape) {
  return std::to_string(shape.channels) + "x" + std::to_string(shape.height) + "x" + std::to_string(shape.width);
}

Result<ImageShape> infer_shape(const Operator& one, std::span<const ImageShape> inputs) {
  if (!takes(one.attributes, inputs.size())) return misfit(one, inputs, "that is another number of inputs than it has");
  for (const ImageShape& input : inputs) {
    const auto count = static_cast<std::uint64_t>(std::max(input.channels, 0)) *
                       static_cast<std::uint64_t>(std::max(input.height, 0)) *
                       static_cast<std::uint64_t>(std::max(input.width, 0));
    if (count == 0) return misfit(one, inputs, "that holds nothing");
    if (input.channels >= (1 << 24) || input.height >= (1 << 15) || input.width >= (1 << 15) || count > kMaxElements)
      return misfit(one, inputs, "that is more than a value may hold; smaller images are needed");
  }
  const Made made = std::visit(Inference{inputs}, one.attributes);
  if (!made.problem.empty()) return misfit(one, inputs, made.problem);
  return made.shape;
}

Result<std::vector<ImageShape>> infer_shapes(const Model& model) {
  std::vector<ImageShape> shapes{model.input};
  std::vector<bool> used(model.operators.size() + 1, false);
  TableCheck tables(model);
  std::size_t heads = 0;
  std::set<std::string_view> layers;
  for (const Operator& one : model.operators) {
    std::vector<ImageShape> inputs;
    for (const std::size_t value : one.inputs) {
      const bool ends = value > 0 && value < shapes.size() &&
                        std::holds_alternative<CrossEntropy>(model.operators[value - 1].attributes);
      if (value >= shapes.size() || ends)
        return Error{ErrorKind::kInvalidJob,
                     one.name + " takes value " + std::to_string(value) + ", which no operator before it makes"};
      used[value] = true;
      inputs.push_back(shapes[value]);
    }
    if (std::holds_alternative<Add>(one.attributes) && one.inputs.size() == 2 && one.inputs[0] == one.inputs[1])
      return misfit(one, inputs, "both are the same value");
    const Result<ImageShape> made = infer_shape(one, inputs);
    if (!made) return made.error();
    if (const Status fits = tables.follow(one, inputs[0]); !fits) return fits.error();
    if (!segments_of(one).empty() && !layers.insert(one.name).second)
      return Error{ErrorKind::kInvalidJob, model.name + " has two layers named " + one.name};
    if (const auto* head = std::get_if<CrossEntropy>(&one.attributes)) {
      used[shapes.size()] = true;
      if (inputs[0].channels != model.classes)
        return misfit(one, inputs, "the model has " + std::to_string(model.classes) + " classes");
      heads += head->auxiliary ? 0 : 1;
    }
    shapes.push_back(*made);
  }
  for (std::size_t value = 1; value < shapes.size(); ++value)
    if (!used[value])
      return Error{ErrorKind::kInvalidJob, model.operators[value - 1].name + " makes a value that nobody uses"};
  if (heads != 1)
    return Error{ErrorKind::kInvalidJob,
                 model.name + " has " + std::to_string(heads) + " heads for evaluation; it needs one"};
  if (const Status used_up = tables.end(); !used_up) return used_up.error();
  return shapes;
}

std::vector<std::size_t> segments_of(const Operator& one) {
  std::vector<std::size_t> segments;
  const auto both = [&](std::size_t weight, std::optional<std::size_t> bias) {
    segments.push_back(weight);
    if (bias) segments.push_back(*bias);
  };
  if (const auto* layer = std::get_if<Convolution>(&one.attributes)) both(layer->weight, layer->bias);
  if (const auto* layer = std::get_if<Dense>(&one.attributes)) both(layer->weight, layer->bias);
  if (const auto* layer = std::get_if<BatchNormalization>(&one.attributes)) {
    if (layer->gamma) segments.push_back(*layer->gamma);
    segments.push_back(layer->beta);
  }
  return segments;
}

}  // namespace tg::engine

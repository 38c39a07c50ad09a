#include "tests/engine/reference_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace tg::engine {
namespace {

struct Image {
  ImageShape shape;
  std::vector<double> values;
  double at(int c, int y, int x) const {
    return values[(static_cast<std::size_t>(c) * shape.height + y) * shape.width + x];
  }
  bool has(int y, int x) const { return y >= 0 && x >= 0 && y < shape.height && x < shape.width; }
};
using Images = std::vector<Image>;  // one value of the graph, by sample

// Begin of the windows along one side, in pixels.
std::vector<int> begins(int inputs, int before, int after, const Window& window) {
  const int reach = window.dilation * (window.kernel - 1) + 1;
  std::vector<int> all;
  for (int begin = -before;; begin += window.stride) {
    const bool fits = begin + reach <= inputs + after;
    if (!fits && !(window.ceil && begin < inputs && begin - window.stride + reach < inputs + after)) return all;
    all.push_back(begin);
  }
}

struct Forward {
  const Model& model;
  const std::vector<double>& parameters;
  const Batch& batch;
  std::uint64_t seed;
  std::vector<const Images*> inputs = {};
  std::size_t index = 0;  // the operator's

  const double* segment(std::size_t i) const { return parameters.data() + model.segments[i].offset; }
  const Images& first() const { return *inputs[0]; }

  // one(sample's image) for every sample.
  template <class One>
  Images each(const One& one) const {
    Images all;
    for (const Image& image : first()) all.push_back(one(image));
    return all;
  }
  // of(rows' begin, columns' begin) for every channel and window.
  template <class Of>
  Image slide(const Window& window, const Image& in, int channels, const Of& of) const {
    const std::vector<int> rows = begins(in.shape.height, window.padding.top, window.padding.bottom, window);
    const std::vector<int> columns = begins(in.shape.width, window.padding.left, window.padding.right, window);
    Image out{{channels, static_cast<int>(rows.size()), static_cast<int>(columns.size())}, {}};
    for (int c = 0; c < channels; ++c)
      for (const int row : rows)
        for (const int column : columns) out.values.push_back(of(c, row, column));
    return out;
  }

  Images operator()(const Convolution& layer) const {
    const double* weight = segment(layer.weight);
    const int kernel = layer.window.kernel, dilation = layer.window.dilation;
    return each([&](const Image& in) {
      const int group_inputs = in.shape.channels / layer.groups, group_outputs = layer.out_channels / layer.groups;
      return slide(layer.window, in, layer.out_channels, [&](int o, int y, int x) {
        double sum = layer.bias ? segment(*layer.bias)[o] : 0;
        for (int c = 0; c < group_inputs; ++c)
          for (int i = 0; i < kernel; ++i)
            for (int j = 0; j < kernel; ++j)
              if (in.has(y + i * dilation, x + j * dilation))
                sum += in.at(o / group_outputs * group_inputs + c, y + i * dilation, x + j * dilation) *
                       weight[((o * group_inputs + c) * kernel + i) * kernel + j];
        return sum;
      });
    });
  }

  Images operator()(const BatchNormalization& layer) const {
    Images out = first();
    const ImageShape shape = out.front().shape;
    const std::size_t pixels = static_cast<std::size_t>(shape.height) * shape.width;
    const double count = static_cast<double>(pixels * out.size());
    for (int c = 0; c < shape.channels; ++c) {
      const auto all = [&](auto change) {
        for (Image& image : out)
          for (std::size_t p = 0; p < pixels; ++p) change(image.values[c * pixels + p]);
      };
      double mean = 0, variance = 0;
      all([&](double& x) { mean += x / count; });
      all([&](double& x) { variance += (x - mean) * (x - mean) / count; });
      const double scale = (layer.gamma ? segment(*layer.gamma)[c] : 1) / std::sqrt(variance + layer.epsilon);
      all([&](double& x) { x = (x - mean) * scale + segment(layer.beta)[c]; });
    }
    return out;
  }

  Images operator()(const LocalResponseNormalization& layer) const {
    return each([&](const Image& in) {
      Image out{in.shape, {}};
      const int group = in.shape.channels / layer.groups;
      for (int c = 0; c < in.shape.channels; ++c) {
        const int low = c / group * group, high = low + group - 1;
        for (int y = 0; y < in.shape.height; ++y) {
          for (int x = 0; x < in.shape.width; ++x) {
            double sum = 0;
            for (int k = std::max(low, c - layer.radius); k <= std::min(high, c + layer.radius); ++k)
              sum += in.at(k, y, x) * in.at(k, y, x);
            out.values.push_back(in.at(c, y, x) / std::pow(layer.bias + layer.alpha * sum, layer.beta));
          }
        }
      }
      return out;
    });
  }

  Images operator()(const MaxPooling& layer) const {
    const int kernel = layer.window.kernel, dilation = layer.window.dilation;
    return each([&](const Image& in) {
      return slide(layer.window, in, in.shape.channels, [&](int c, int y, int x) {
        double highest = -std::numeric_limits<double>::infinity();
        for (int i = 0; i < kernel; ++i)
          for (int j = 0; j < kernel; ++j)
            if (in.has(y + i * dilation, x + j * dilation))
              highest = std::max(highest, in.at(c, y + i * dilation, x + j * dilation));
        return highest;
      });
    });
  }

  Images operator()(const AdaptiveAverage& layer) const {
    return each([&](const Image& in) {
      Image out{{in.shape.channels, layer.height, layer.width}, {}};
      const auto begin = [](int i, int count, int parts) { return i * count / parts; };
      const auto end = [](int i, int count, int parts) { return ((i + 1) * count + parts - 1) / parts; };
      for (int c = 0; c < in.shape.channels; ++c)
        for (int i = 0; i < layer.height; ++i)
          for (int j = 0; j < layer.width; ++j) {
            double sum = 0;
            int count = 0;
            for (int y = begin(i, in.shape.height, layer.height); y < end(i, in.shape.height, layer.height); ++y)
              for (int x = begin(j, in.shape.width, layer.width); x < end(j, in.shape.width, layer.width); ++x) {
                sum += in.at(c, y, x);
                ++count;
              }
            out.values.push_back(sum / count);
          }
      return out;
    });
  }

  Images operator()(const Relu&) const {
    return each([](Image in) {
      for (double& value : in.values) value = std::max(value, 0.0);
      return in;
    });
  }

  Images operator()(const Dense& layer) const {
    return each([&](const Image& in) {
      Image out{{layer.out_features, 1, 1}, {}};
      for (int o = 0; o < layer.out_features; ++o) {
        const double* row = segment(layer.weight) + static_cast<std::size_t>(o) * in.values.size();
        double sum = layer.bias ? segment(*layer.bias)[o] : 0;
        for (std::size_t i = 0; i < in.values.size(); ++i) sum += row[i] * in.values[i];
        out.values.push_back(sum);
      }
      return out;
    });
  }

  // Draws the mask as engine/graph/dropout.h does, feature by feature.
  Images operator()(const Dropout& layer) const {
    const auto threshold = static_cast<std::uint32_t>(std::lround(layer.probability * 65536));
    Images out = first();
    for (std::size_t sample = 0; sample < out.size(); ++sample) {
      const std::uint64_t position = batch.first_position + sample;
      for (std::size_t i = 0; i < out[sample].values.size(); ++i) {
        const std::uint32_t counter[4] = {static_cast<std::uint32_t>(i / 8), static_cast<std::uint32_t>(position),
                                          0x50000000u + static_cast<std::uint32_t>(index),
                                          static_cast<std::uint32_t>(position >> 32)};
        std::uint32_t words[4];
        kernels::philox4x32(counter, seed, words);
        const std::uint32_t drawn = words[i % 8 / 2] >> (i % 2 == 0 ? 0 : 16) & 0xffff;
        out[sample].values[i] *= drawn < threshold ? 0 : 65536.0 / (65536.0 - threshold);
      }
    }
    return out;
  }

  Images operator()(const Concat&) const {
    Images out = first();
    for (std::size_t input = 1; input < inputs.size(); ++input)
      for (std::size_t sample = 0; sample < out.size(); ++sample) {
        const Image& more = (*inputs[input])[sample];
        out[sample].shape.channels += more.shape.channels;
        out[sample].values.insert(out[sample].values.end(), more.values.begin(), more.values.end());
      }
    return out;
  }

  Images operator()(const Add&) const {
    Images out = first();
    for (std::size_t sample = 0; sample < out.size(); ++sample)
      for (std::size_t i = 0; i < out[sample].values.size(); ++i)
        out[sample].values[i] += (*inputs[1])[sample].values[i];
    return out;
  }

  Images operator()(const Flatten&) const {
    return each([](Image in) {
      in.shape = {static_cast<int>(in.values.size()), 1, 1};
      return in;
    });
  }

  // A sample's loss, by sample.
  Images operator()(const CrossEntropy& head) const {
    Images losses;
    for (std::size_t sample = 0; sample < first().size(); ++sample) {
      const std::vector<double>& logits = first()[sample].values;
      const double highest = *std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (const double logit : logits) sum += std::exp(logit - highest);
      const double normalizer = std::log(sum) + highest;
      double loss = (1 - head.smoothing) * (normalizer - logits[batch.labels[sample]]);
      for (const double logit : logits)
        loss += head.smoothing / static_cast<double>(logits.size()) * (normalizer - logit);
      const double of_class = model.class_weights.empty() ? 1 : model.class_weights[batch.labels[sample]];
      losses.push_back({{1, 1, 1}, {head.weight * of_class * loss}});
    }
    return losses;
  }
};

}  // namespace

double reference_loss(const Model& model, const std::vector<double>& parameters, const Batch& batch,
                      std::uint64_t seed) {
  std::vector<Images> values(1);
  for (int sample = 0; sample < batch.count; ++sample) {
    const float* pixels = batch.images.data() + sample * model.input.elements();
    values[0].push_back({model.input, std::vector<double>(pixels, pixels + model.input.elements())});
  }
  double loss = 0;
  Forward forward{model, parameters, batch, seed};
  for (forward.index = 0; forward.index < model.operators.size(); ++forward.index) {
    const Operator& one = model.operators[forward.index];
    forward.inputs.clear();
    for (const std::size_t value : one.inputs) forward.inputs.push_back(&values[value]);
    Images made = std::visit(forward, one.attributes);
    if (std::holds_alternative<CrossEntropy>(one.attributes))
      for (const Image& sample : made) loss += sample.values[0];
    values.push_back(std::move(made));
  }
  return loss;
}

}  // namespace tg::engine

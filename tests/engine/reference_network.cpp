#include "tests/engine/reference_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tg::engine {
namespace {

struct Image {
  ImageShape shape;
  std::vector<double> values;
  double at(int c, int y, int x) const {
    return values[(static_cast<std::size_t>(c) * shape.height + y) * shape.width + x];
  }
};

struct Forward {
  const SegmentTable& segments;
  const std::vector<double>& parameters;

  const double* segment(std::size_t i) const { return parameters.data() + segments[i].offset; }

  Image operator()(const Convolution& layer, const Image& in) const {
    const int padding = layer.pad_before + layer.pad_after;
    Image out{{layer.out_channels, (in.shape.height + padding - layer.kernel) / layer.stride + 1,
               (in.shape.width + padding - layer.kernel) / layer.stride + 1},
              {}};
    const double* weight = segment(layer.weight);
    for (int o = 0; o < out.shape.channels; ++o) {
      for (int y = 0; y < out.shape.height; ++y) {
        for (int x = 0; x < out.shape.width; ++x) {
          double sum = segment(layer.bias)[o];
          for (int c = 0; c < layer.in_channels; ++c) {
            for (int i = 0; i < layer.kernel; ++i) {
              const int row = y * layer.stride + i - layer.pad_before;
              if (row < 0 || row >= in.shape.height) continue;
              for (int j = 0; j < layer.kernel; ++j) {
                const int column = x * layer.stride + j - layer.pad_before;
                if (column < 0 || column >= in.shape.width) continue;
                sum +=
                    in.at(c, row, column) * weight[((o * layer.in_channels + c) * layer.kernel + i) * layer.kernel + j];
              }
            }
          }
          out.values.push_back(sum);
        }
      }
    }
    return out;
  }

  Image operator()(const MaxPooling& layer, const Image& in) const {
    const int padding = layer.pad_before + layer.pad_after;
    Image out{{in.shape.channels, (in.shape.height + padding - layer.kernel) / layer.stride + 1,
               (in.shape.width + padding - layer.kernel) / layer.stride + 1},
              {}};
    for (int c = 0; c < out.shape.channels; ++c) {
      for (int y = 0; y < out.shape.height; ++y) {
        for (int x = 0; x < out.shape.width; ++x) {
          double highest = -std::numeric_limits<double>::infinity();
          for (int i = 0; i < layer.kernel; ++i) {
            for (int j = 0; j < layer.kernel; ++j) {
              const int row = y * layer.stride + i - layer.pad_before;
              const int column = x * layer.stride + j - layer.pad_before;
              if (row < 0 || column < 0 || row >= in.shape.height || column >= in.shape.width) continue;
              highest = std::max(highest, in.at(c, row, column));
            }
          }
          out.values.push_back(highest);
        }
      }
    }
    return out;
  }

  Image operator()(const LocalResponseNormalization& layer, const Image& in) const {
    Image out{in.shape, {}};
    for (int c = 0; c < in.shape.channels; ++c) {
      for (int y = 0; y < in.shape.height; ++y) {
        for (int x = 0; x < in.shape.width; ++x) {
          double sum = 0;
          for (int k = std::max(0, c - layer.radius); k <= std::min(in.shape.channels - 1, c + layer.radius); ++k) {
            sum += in.at(k, y, x) * in.at(k, y, x);
          }
          out.values.push_back(in.at(c, y, x) / std::pow(layer.bias + layer.alpha * sum, layer.beta));
        }
      }
    }
    return out;
  }

  Image operator()(const Relu&, Image in) const {
    for (double& each : in.values) each = std::max(each, 0.0);
    return in;
  }

  Image operator()(const Dense& layer, const Image& in) const {
    Image out{{layer.out_features, 1, 1}, {}};
    for (int o = 0; o < layer.out_features; ++o) {
      const double* row = segment(layer.weight) + static_cast<std::size_t>(o) * layer.in_features;
      double sum = segment(layer.bias)[o];
      for (int i = 0; i < layer.in_features; ++i) sum += row[i] * in.values[i];
      out.values.push_back(sum);
    }
    return out;
  }
};

}  // namespace

double reference_loss(const Model& model, const std::vector<double>& parameters, const Batch& batch) {
  const Forward forward{model.segments, parameters};
  double loss = 0;
  for (int sample = 0; sample < batch.count; ++sample) {
    const float* pixels = batch.images.data() + sample * model.input.elements();
    Image image{model.input, std::vector<double>(pixels, pixels + model.input.elements())};
    for (const Layer& layer : model.layers) {
      image = std::visit([&](const auto& each) { return forward(each, image); }, layer);
    }
    const double highest = *std::max_element(image.values.begin(), image.values.end());
    double sum = 0;
    for (const double logit : image.values) sum += std::exp(logit - highest);
    loss += std::log(sum) + highest - image.values[batch.labels[sample]];
  }
  return loss;
}

}  // namespace tg::engine

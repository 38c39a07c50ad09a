// The models: what a network is, independent of the engine that runs it. A model is a plain list of layers and the
// segments that they use. LeNet and CifarNet are those that the paper's own code trains: layers, paddings and initial
// deviations are the same, and so are the numbers of parameters. Immutable; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "engine/segment.h"
#include "kernels/base/choices.h"

namespace tg::engine {

// weight/bias are segment indices. Padding is given as PyTorch would have to be told, before/after per edge.
struct Convolution {
  int in_channels, out_channels, kernel, stride, pad_before, pad_after;
  std::size_t weight, bias;
};
struct MaxPooling {
  int kernel, stride, pad_before, pad_after;
};
// y = x / (bias + alpha * sum over 2*radius+1 channels of x^2)^beta: TensorFlow's form, alpha not divided by the
// window.
struct LocalResponseNormalization {
  int radius;
  float bias, alpha, beta;
};
struct Relu {};
// Flattens C, H, W in that order first where its input is an image.
struct Dense {
  int in_features, out_features;
  std::size_t weight, bias;
};
using Layer = std::variant<Convolution, MaxPooling, LocalResponseNormalization, Relu, Dense>;

struct ImageShape {
  int channels = 0, height = 0, width = 0;
  std::size_t elements() const { return static_cast<std::size_t>(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

struct Model {
  std::string name;
  ImageShape input;
  int classes = 0;
  SegmentTable segments;
  // The softmax cross-entropy over `classes` logits follows the last one. Empty for a model of which only the segments
  // are written down (models/outlines): its gradients can be replayed, it cannot be trained.
  std::vector<Layer> layers;
  bool trainable() const { return !layers.empty(); }
};

Model make_model(ModelKind kind);

// The initial parameters: truncated normals and constants drawn from the seed by Philox with + - * / only, so that
// every machine gets the same bits. Of segment number `index`: elements [first, first + values.size()), padding 0.
void initialize(const Segment& segment, std::size_t index, std::uint64_t seed, std::size_t first,
                std::span<float> values);
// Of all segments; parameters: padded_count floats.
void initialize(const SegmentTable& segments, std::uint64_t seed, float* parameters);

}  // namespace tg::engine

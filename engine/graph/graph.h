// The graph of a network, independent of the engine that runs it. Operators are in the order of the forward pass, each
// with the values that it takes: value 0 is the images, operator i makes value i + 1. A value is an image or, one pixel
// large, a row of features. Plain data; graph/shapes.h has the rules.
//
// weight, bias, gamma and beta are indices of the model's segments, mean and variance of its statistics (model.h).
// Segments are numbered in the order of the operators, so that backward completes them last first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tg::engine {

struct ImageShape {
  int channels = 0, height = 0, width = 0;
  std::size_t elements() const { return static_cast<std::size_t>(channels) * height * width; }
  bool operator==(const ImageShape&) const = default;
};

// Pixels beyond each edge.
struct Padding {
  int top = 0, left = 0, bottom = 0, right = 0;
};

// A square window that moves over an image.
struct Window {
  int kernel = 1, stride = 1, dilation = 1;
  Padding padding = {};
  bool ceil = false;  // a last window that begins in the image or its leading padding counts even if it ends outside
};

// As in PyTorch: weight is out_channels x in_channels/groups x kernel x kernel.
struct Convolution {
  int out_channels = 0, groups = 1;
  Window window = {};
  std::size_t weight = 0;
  std::optional<std::size_t> bias = {};
};
// y = gamma * (x - mean) / sqrt(variance + epsilon) + beta, by channel; gamma is 1 if there is none. Training takes the
// batch's mean and variance, evaluation the running ones, which follow at the rate `momentum` (engine.h).
struct BatchNormalization {
  float epsilon = 1e-5F, momentum = 0.1F;
  std::optional<std::size_t> gamma = {};
  std::size_t beta = 0;
  std::size_t mean = 0, variance = 0;
};
// y = x / (bias + alpha * sum over 2*radius+1 channels of x^2)^beta: TensorFlow's form, alpha not divided by the
// window. The channels are in `groups` equal parts, and no sum reaches from one into another.
struct LocalResponseNormalization {
  int radius = 0;
  float bias = 1, alpha = 0, beta = 0.75F;
  int groups = 1;
};
struct MaxPooling {
  Window window = {};
};
// Means over height x width parts that cover the image, as in PyTorch: part i of n covers pixels floor(i*H/n) up to
// ceil((i+1)*H/n). 1 x 1 is the global average.
struct AdaptiveAverage {
  int height = 1, width = 1;
};
struct Relu {};
// Rows in, rows out: weight is out_features x in_features.
struct Dense {
  int out_features = 0;
  std::size_t weight = 0;
  std::optional<std::size_t> bias = {};
};
// Acts on rows, in training only (graph/dropout.h).
struct Dropout {
  double probability = 0;  // probability that a feature becomes 0
};
// Joins the inputs' channels, in the order of the inputs.
struct Concat {};
// Adds two different values of the same shape.
struct Add {};
// Turns an image into a row, in C, H, W order.
struct Flatten {};
// A head: weight * softmax cross-entropy of a row of logits. Auxiliary heads count in training only; exactly one head
// is not auxiliary. smoothing: that share of the target is spread evenly over all classes.
struct CrossEntropy {
  double weight = 1;
  bool auxiliary = false;
  double smoothing = 0;
};

using Attributes = std::variant<Convolution, BatchNormalization, LocalResponseNormalization, MaxPooling,
                                AdaptiveAverage, Relu, Dense, Dropout, Concat, Add, Flatten, CrossEntropy>;

struct Operator {
  std::string name;  // "features.0", "layer1.0.relu": for errors, and for people
  Attributes attributes;
  std::vector<std::size_t> inputs;  // values
};

}  // namespace tg::engine

// Builds a model operator by operator: tracks shapes, names the segments as PyTorch does, and turns TensorFlow's SAME
// padding into numbers. Each call adds an operator after the builder's place, which is the last value made unless
// from() has set another. build() reports the first operator that does not fit; nothing is added after it. Used once
// per model; not shared between threads.
#pragma once

#include <string>
#include <vector>

#include "engine/model.h"

namespace tg::engine {

// The initial values of a layer's parameters, and whether weight decay applies to its weight (never to its bias).
struct Parameters {
  double weight_deviation = 0;  // truncated normal, cut at two deviations
  double weight_bound = 0;      // if there is no deviation: uniform up to this bound
  double bias_value = 0;
  double bias_bound = 0;  // if not 0: uniform up to this bound
  bool decays = false;
};
// PyTorch's initial values of a layer with `fan_in` inputs: weight and bias uniform up to 1 / sqrt(fan_in).
Parameters uniform_parameters(int fan_in);
// He initialization: normal_parameters with the variance 2 / fan.
Parameters he_parameters(int fan);
// A normal of that deviation, corrected for the cut.
Parameters normal_parameters(double deviation);

// As much padding as gives ceil(input / stride) outputs; an odd pixel goes at the end.
inline constexpr int kSame = -1;

struct Filters {
  int count = 0, kernel = 1, stride = 1;
  int padding = kSame;
  int groups = 1, dilation = 1;
  bool bias = true;
};
struct Pool {
  int kernel = 1, stride = 1;
  int padding = kSame;
  bool ceil = false;
};
struct Normalized {
  float epsilon = 1e-5F, momentum = 0.1F;
  bool gamma = true;
};

class ModelBuilder {
 public:
  ModelBuilder(std::string name, ImageShape input);

  // The builder's place: a value of the graph, and its shape.
  std::size_t place() const { return place_; }
  const ImageShape& shape() const { return shapes_[place_]; }
  ModelBuilder& from(std::size_t value);

  // Makes NAME.weight and NAME.bias.
  ModelBuilder& convolution(const std::string& name, const Filters& filters, const Parameters& parameters);
  ModelBuilder& dense(const std::string& name, int out_features, const Parameters& parameters, bool bias = true);
  // Makes NAME.weight (gamma) and NAME.bias (beta), and the statistics NAME.running_mean and NAME.running_var.
  ModelBuilder& batch_normalization(const std::string& name, const Normalized& how);
  ModelBuilder& normalization(const LocalResponseNormalization& layer);
  ModelBuilder& max_pooling(const Pool& pool);
  ModelBuilder& adaptive_average(int height, int width);
  ModelBuilder& relu();
  ModelBuilder& dropout(double probability);
  ModelBuilder& concat(const std::vector<std::size_t>& values);
  ModelBuilder& add(std::size_t value);  // adds the value to the place
  ModelBuilder& flatten();               // adds nothing if it is already a row
  // Adds a head for the logits at the place, which the previous layer has made.
  ModelBuilder& auxiliary_head(double weight);

  // The logits are at the place. The builder is spent after this.
  Result<Model> build(double label_smoothing = 0);

 private:
  ModelBuilder& append(const std::string& name, Attributes attributes, std::vector<std::size_t> inputs);
  ModelBuilder& append(const std::string& kind, Attributes attributes);
  std::size_t add_segment(const std::string& name, std::vector<std::int64_t> shape, const Parameters& parameters,
                          bool weight);
  std::size_t add_statistic(const std::string& name, double value);
  Window window(int kernel, int stride, int padding, int dilation) const;

  Model model_;
  std::vector<ImageShape> shapes_;  // by value
  std::size_t place_ = 0;
  std::vector<Segment> segments_, statistics_;
  std::optional<Error> problem_;
};

}  // namespace tg::engine

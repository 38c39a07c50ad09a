// Writes a model down operator by operator: tracks shapes, names the segments as PyTorch does, and turns TensorFlow's
// SAME padding into numbers. Each call adds an operator behind the builder's place, the value made last, unless from()
// has set another. What does not fit is kept for build(), and nothing is added after it. Used once per model; not
// shared between threads.
#pragma once

#include <string>
#include <vector>

#include "engine/model.h"

namespace tg::engine {

// What a layer's parameters start as, and whether weight decay applies to its weight (never to its bias).
struct Parameters {
  double weight_deviation = 0;  // truncated normal, cut at two deviations
  double weight_bound = 0;      // else uniform
  double bias_value = 0;
  double bias_bound = 0;  // else uniform
  bool decays = false;
};
// PyTorch's own start of a layer with `fan_in` inputs: weight and bias uniform up to 1 / sqrt(fan_in).
Parameters uniform_parameters(int fan_in);
// He's: normal_parameters of the variance 2 / fan.
Parameters he_parameters(int fan);
// A normal of that deviation; its cut is made up for.
Parameters normal_parameters(double deviation);

// As many pixels as keep ceil(input / stride) outputs; an odd one goes after.
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
  bool count_padding = true;  // of averages
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

  // NAME.weight and NAME.bias.
  ModelBuilder& convolution(const std::string& name, const Filters& filters, const Parameters& parameters);
  ModelBuilder& dense(const std::string& name, int out_features, const Parameters& parameters, bool bias = true);
  // NAME.weight (gamma) and NAME.bias (beta); statistics NAME.running_mean and NAME.running_var.
  ModelBuilder& batch_normalization(const std::string& name, const Normalized& how);
  ModelBuilder& normalization(const LocalResponseNormalization& layer);
  ModelBuilder& max_pooling(const Pool& pool);
  ModelBuilder& average_pooling(const Pool& pool);
  ModelBuilder& adaptive_average(int height, int width);
  ModelBuilder& relu();
  ModelBuilder& dropout(double probability);
  ModelBuilder& concat(const std::vector<std::size_t>& values);
  ModelBuilder& add(std::size_t value);  // to the place
  ModelBuilder& flatten();               // nothing where it is a row already
  // A head of the logits at the place, whose layer is the one before it.
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

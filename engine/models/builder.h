// Writes a model down layer by layer: tracks the shape that reaches the next layer, names the segments as PyTorch does,
// and turns TensorFlow's SAME padding into numbers. Used once per model; not shared between threads.
#pragma once

#include <string>
#include <vector>

#include "engine/model.h"

namespace tg::engine {

// What a layer's parameters start as, and whether weight decay applies to its weight (never to its bias).
struct Parameters {
  double weight_deviation = 0;  // truncated normal, cut at two deviations
  double bias_value = 0;
  bool decays = false;
};

class ModelBuilder {
 public:
  ModelBuilder(std::string name, ImageShape input);

  // SAME padding: ceil(input / stride) outputs; an odd pixel of padding goes after.
  ModelBuilder& convolution(const std::string& name, int out_channels, int kernel, const Parameters& parameters);
  ModelBuilder& max_pooling(int kernel, int stride);
  ModelBuilder& normalization(const LocalResponseNormalization& layer);
  ModelBuilder& relu();
  ModelBuilder& dense(const std::string& name, int out_features, const Parameters& parameters);

  // The last dense layer gives the logits. The builder is spent after this.
  Model build();

 private:
  std::size_t add_segment(const std::string& name, std::vector<std::int64_t> shape, const Parameters& parameters,
                          bool weight);

  Model model_;
  ImageShape shape_;  // of what the next layer takes
  std::vector<Segment> segments_;
};

Model make_lenet();
Model make_cifarnet();

}  // namespace tg::engine

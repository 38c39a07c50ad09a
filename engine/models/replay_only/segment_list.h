// Builds a model from the segments of a published network, without its layers; a replayed run (compute = replay) needs
// no more. Such a model cannot be trained: Model::operators stays empty, and it is as published whatever the options
// say. Used once per model; not shared between threads.
#pragma once

#include <string>
#include <vector>

#include "engine/model.h"

namespace tg::engine {

class SegmentList {
 public:
  SegmentList(std::string name, ImageShape input);

  // Adds NAME.weight {out, in, kernel, kernel} and NAME.bias {out}.
  SegmentList& convolution(const std::string& name, int in_channels, int out_channels, int kernel);
  // Adds NAME.weight {out, in} and NAME.bias {out}.
  SegmentList& dense(const std::string& name, int in_features, int out_features);

  // The last layer gives the logits. The list is spent after this.
  Model build();

 private:
  void add(const std::string& name, std::vector<std::int64_t> shape, bool weight);

  Model model_;
  std::vector<Segment> segments_;
};

}  // namespace tg::engine

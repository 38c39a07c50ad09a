#include "engine/models/replay_only/segment_list.h"

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

// Not 0, so that updates of a replayed run round like those of a trained run.
constexpr double kInitialWeight = 0.01;

}  // namespace

SegmentList::SegmentList(std::string name, ImageShape input) {
  model_.name = std::move(name);
  model_.input = input;
}

void SegmentList::add(const std::string& name, std::vector<std::int64_t> shape, bool weight) {
  segments_.push_back({.name = name + (weight ? ".weight" : ".bias"),
                       .shape = std::move(shape),
                       .initial_value = weight ? kInitialWeight : 0,
                       .decays = weight});
}

SegmentList& SegmentList::convolution(const std::string& name, int in_channels, int out_channels, int kernel) {
  add(name, {out_channels, in_channels, kernel, kernel}, true);
  add(name, {out_channels}, false);
  return *this;
}

SegmentList& SegmentList::dense(const std::string& name, int in_features, int out_features) {
  add(name, {out_features, in_features}, true);
  add(name, {out_features}, false);
  return *this;
}

Model SegmentList::build() {
  TG_CHECK(segments_.size() >= 2, model_.name);
  Segment& weight = segments_[segments_.size() - 2];
  weight.last_layer = segments_.back().last_layer = true;
  model_.classes = static_cast<int>(weight.shape[0]);
  model_.segments = SegmentTable(std::move(segments_));
  return std::move(model_);
}

}  // namespace tg::engine

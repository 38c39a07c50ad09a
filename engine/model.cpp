#include "engine/model.h"

#include <algorithm>
#include <set>

#include "engine/models/models.h"
#include "kernels/base/check.h"
#include "kernels/base/joined.h"

namespace tg::engine {
namespace {

struct Published {
  ModelKind kind;
  ImageShape input;
  int classes;
  Result<Model> (*make)(const ModelOptions& options);
};

constexpr Published kPublished[] = {
    {ModelKind::kLenet, {1, 28, 28}, 10, make_lenet},
    {ModelKind::kCifarnet, {3, 24, 24}, 10, make_cifarnet},
    {ModelKind::kGooglenet, {3, 224, 224}, 1000, make_googlenet},
    {ModelKind::kAlexnet, {3, 224, 224}, 1000, make_alexnet},
    {ModelKind::kVggA, {3, 224, 224}, 1000, make_vgg_a},
    {ModelKind::kAlexnetTwoColumn, {3, 224, 224}, 1001, make_alexnet_two_column},
    {ModelKind::kGooglenetSlim, {3, 224, 224}, 1001, make_googlenet_slim},
    {ModelKind::kResnet18, {3, 224, 224}, 1000, make_resnet_18},
    {ModelKind::kResnet20, {3, 32, 32}, 10, make_resnet_20},
    {ModelKind::kResnet50, {3, 224, 224}, 1000, make_resnet_50},
    {ModelKind::kMlp, {1, 28, 28}, 10, make_mlp},
};
static_assert(std::size(kPublished) == values_of<ModelKind>().size());

const Published& published(ModelKind kind) {
  for (const Published& each : kPublished)
    if (each.kind == kind) return each;
  TG_CHECK(false, static_cast<int>(kind));
}

Status freeze(const std::vector<std::string>& prefixes, Model& model) {
  std::vector<Segment> segments = model.segments.segments();
  for (const std::string& prefix : prefixes) {
    bool found = false;
    for (Segment& segment : segments) {
      if (!segment.name.starts_with(prefix)) continue;
      found = segment.frozen = true;
      segment.decays = false;
    }
    if (found) continue;
    std::set<std::string> layers;
    for (const Segment& segment : segments) layers.insert(segment.name.substr(0, segment.name.find('.')));
    return Error{ErrorKind::kInvalidJob, "freeze: no parameter of " + model.name + " has a name that begins with " +
                                             prefix + "; its names begin with " + joined(layers)};
  }
  if (std::ranges::all_of(segments, &Segment::frozen))
    return Error{ErrorKind::kInvalidJob, "freeze leaves no parameter of " + model.name + " to train"};
  model.segments = SegmentTable(std::move(segments));
  return {};
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

Status set_dropout(const std::vector<double>& probabilities, Model& model) {
  std::vector<Dropout*> layers;
  for (Operator& one : model.operators)
    if (auto* layer = std::get_if<Dropout>(&one.attributes)) layers.push_back(layer);
  if (layers.empty())
    return Error{ErrorKind::kInvalidJob, "dropout: " + model.name + " has no dropout layer; leave it out"};
  if (layers.size() != probabilities.size())
    return Error{ErrorKind::kInvalidJob, "dropout has " + counted(probabilities.size(), "value") + ", and " +
                                             model.name + " has " + counted(layers.size(), "dropout layer") +
                                             "; give it one value for each"};
  for (std::size_t i = 0; i < layers.size(); ++i) layers[i]->probability = probabilities[i];
  return {};
}

}  // namespace

ImageShape published_input(ModelKind kind) { return published(kind).input; }

Result<Model> make_model(const ModelOptions& options) {
  const Published& as_published = published(options.kind);
  ModelOptions resolved = options;
  if (!resolved.input) resolved.input = as_published.input;
  if (resolved.classes == 0) resolved.classes = as_published.classes;
  Result<Model> model = as_published.make(resolved);
  if (!model) return model;
  if (!options.dropout.empty())
    if (const Status set = set_dropout(options.dropout, *model); !set) return set.error();
  if (!options.freeze.empty())
    if (const Status frozen = freeze(options.freeze, *model); !frozen) return frozen.error();
  return model;
}

Model make_model(ModelKind kind) { return make_model(ModelOptions{.kind = kind}).value(); }

}  // namespace tg::engine

#include "engine/model.h"

#include "engine/models/builder.h"
#include "engine/models/outlines/outline.h"

namespace tg::engine {
namespace {

struct Known {
  std::string_view name;
  Model (*make)();
};

constexpr Known kKnown[] = {
    {"lenet", make_lenet},
    {"cifarnet", make_cifarnet},
    {"lenet-caffe", make_lenet_caffe},
    {"cifarnet-32", make_cifarnet_32},
    {"googlenet", make_googlenet},
    {"alexnet", make_alexnet},
    {"vgg-a", make_vgg_a},
};

}  // namespace

const std::vector<std::string>& model_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Known& known : kKnown) all.emplace_back(known.name);
    return all;
  }();
  return names;
}

Result<Model> make_model(std::string_view name) {
  for (const Known& known : kKnown)
    if (known.name == name) return known.make();
  std::string known;
  for (const std::string& each : model_names()) known += (known.empty() ? "" : ", ") + each;
  return Error{ErrorKind::kInvalidJob, "unknown model '" + std::string(name) + "'; known models: " + known};
}

}  // namespace tg::engine

#include "engine/graph/graph_json.h"

#include <nlohmann/json.hpp>

#include "kernels/base/check.h"

namespace tg::engine {
namespace {

using Json = nlohmann::ordered_json;

void add_window(const Window& window, Json& json) {
  json["kernel"] = window.kernel;
  json["stride"] = window.stride;
  json["dilation"] = window.dilation;
  json["padding"] = {window.padding.top, window.padding.left, window.padding.bottom, window.padding.right};
  json["ceil"] = window.ceil;
}

struct AddAttributes {
  const Model& model;
  Json& json;

  void kind(const char* word) const { json["kind"] = word; }
  void segment(const char* key, std::size_t index) const { json[key] = model.segments[index].name; }
  void statistic(const char* key, std::size_t index) const { json[key] = model.statistics[index].name; }

  void operator()(const Convolution& one) const {
    kind("convolution");
    add_window(one.window, json);
    json["groups"] = one.groups;
    segment("weight", one.weight);
    if (one.bias) segment("bias", *one.bias);
  }
  void operator()(const BatchNormalization& one) const {
    kind("batch-normalization");
    json["epsilon"] = one.epsilon;
    if (one.gamma) segment("gamma", *one.gamma);
    segment("beta", one.beta);
    statistic("mean", one.mean);
    statistic("variance", one.variance);
  }
  void operator()(const LocalResponseNormalization& one) const {
    kind("local-response-normalization");
    json["radius"] = one.radius;
    json["bias"] = one.bias;
    json["alpha"] = one.alpha;
    json["beta"] = one.beta;
    json["groups"] = one.groups;
  }
  void operator()(const MaxPooling& one) const {
    kind("max-pooling");
    add_window(one.window, json);
  }
  void operator()(const AdaptiveAverage& one) const {
    kind("adaptive-average");
    json["height"] = one.height;
    json["width"] = one.width;
  }
  void operator()(const Relu&) const { kind("relu"); }
  void operator()(const Dense& one) const {
    kind("dense");
    segment("weight", one.weight);
    if (one.bias) segment("bias", *one.bias);
  }
  void operator()(const Dropout& one) const {
    kind("dropout");
    json["probability"] = one.probability;
  }
  void operator()(const Concat&) const { kind("concat"); }
  void operator()(const Add&) const { kind("add"); }
  void operator()(const Flatten&) const { kind("flatten"); }
  void operator()(const CrossEntropy&) const { TG_CHECK(false); }
};

}  // namespace

std::string graph_json(const Model& model) {
  const auto name_of = [&](std::size_t value) { return value == 0 ? "input" : model.operators[value - 1].name; };
  std::vector<bool> needed(model.operators.size() + 1, false);
  Json json;
  for (std::size_t i = model.operators.size(); i > 0; --i) {
    const Operator& one = model.operators[i - 1];
    const auto* head = std::get_if<CrossEntropy>(&one.attributes);
    if (head != nullptr && !head->auxiliary) json["output"] = name_of(one.inputs[0]);
    if (!needed[i] && (head == nullptr || head->auxiliary)) continue;
    for (const std::size_t value : one.inputs) needed[value] = true;
  }
  Json& operators = json["operators"] = Json::array();
  for (std::size_t i = 1; i < needed.size(); ++i) {
    if (!needed[i]) continue;
    const Operator& one = model.operators[i - 1];
    Json& entry = operators.emplace_back();
    entry["name"] = one.name;
    entry["kind"] = nullptr;  // keeps its place
    Json& inputs = entry["inputs"] = Json::array();
    for (const std::size_t value : one.inputs) inputs.push_back(name_of(value));
    std::visit(AddAttributes{model, entry}, one.attributes);
  }
  return json.dump();
}

}  // namespace tg::engine

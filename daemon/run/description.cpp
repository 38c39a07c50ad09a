#include "daemon/run/description.h"

#include <nlohmann/json.hpp>

#include "engine/graph/graph_json.h"

namespace tg::daemon {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const engine::ImageShape& shape) { return {shape.channels, shape.height, shape.width}; }

const char* channels_of(const engine::Recipe& recipe) {
  if (recipe.floats) return "as in the data";
  return recipe.input.channels == 3 ? "RGB" : recipe.input.channels == 1 ? "grey" : "as in the data";
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

Result<std::string> describe(const engine::Model& model, const engine::Recipe& recipe, const engine::Dataset& data,
                             const schema::JobSpec& job) {
  Json json;
  json["model"] = model.name;
  json["parameters"] = model.segments.parameter_count();
  json["input"] = {{"shape", json_of(model.input)}, {"order", "CHW"}, {"channels", channels_of(recipe)}};
  json["preprocessing"] = Json::parse(engine::recipe_json(recipe));
  json["data"] = {{"kind", to_word(data.kind)},
                  {"stored", json_of(data.train.stored)},
                  {"test_samples", data.test.count()},
                  {"test_share", job.test_share},
                  {"seed", job.data_seed},
                  {"damaged", to_word(data.damaged)}};
  json["classes"] = data.classes;
  json["graph"] = Json::parse(engine::graph_json(model));
  std::string text = text_of(json);
  if (text.size() <= kMaxDescriptionBytes) return text;
  json["classes"] = nullptr;
  text = text_of(json);
  if (text.size() <= kMaxDescriptionBytes) return text;
  return Error{ErrorKind::kInvalidJob, std::string("data = ") + to_word(data.kind) + " has " +
                                           std::to_string(recipe.mean.size()) +
                                           " features, more than a model file can describe with mean and deviation of "
                                           "each; set normalization = none"};
}

}  // namespace tg::daemon

#include <nlohmann/json.hpp>

#include "engine/recipe.h"

namespace tg::engine {

std::string recipe_json(const Recipe& recipe) {
  nlohmann::ordered_json json;
  json["input"] = {recipe.input.channels, recipe.input.height, recipe.input.width};
  json["samples"] = recipe.floats ? "floats" : "bytes";
  json["resize"] = recipe.resize;
  json["resize-shape"] = to_word(recipe.resize_shape);
  json["filter"] = "triangle, antialiased, 8 bits";  // the resize's filter
  json["normalization"] = to_word(recipe.normalization);
  json["mean"] = recipe.mean;
  json["deviation"] = recipe.deviation;
  auto& training = json["training"];
  training["crop"] = to_word(recipe.crop);
  training["padding"] = recipe.padding;
  training["least-area"] = recipe.least_area;
  training["flip"] = to_word(recipe.flip);
  training["colour"] = to_word(recipe.colour);
  training["colour-strength"] = recipe.colour_strength;
  training["colour-hue"] = recipe.colour_hue;
  return json.dump();
}

}  // namespace tg::engine

#include "ctl/fetch/model_json.h"

#include <nlohmann/json.hpp>

namespace tg::ctl {
namespace {

using Json = nlohmann::ordered_json;

// The members of an object or list, each on a line of its own.
void write_lines(const Json& json, const std::string& indent, std::string& text) {
  const bool object = json.is_object();
  text += object ? "{" : "[";
  const char* between = "\n";
  for (const auto& [key, value] : json.items()) {
    text += between + indent + "  ";
    if (object) text += Json(key).dump() + ": ";
    if (object && (key == "graph" || key == "operators")) {
      write_lines(value, indent + "  ", text);
    } else {
      text += value.dump();
    }
    between = ",\n";
  }
  text += "\n" + indent + (object ? "}" : "]");
}

Json compose(const Json& description, const Json& record) {
  Json evaluation = record.at("evaluation");
  if (evaluation.is_object()) evaluation["samples"] = description.at("data").at("test_samples");
  Json json{{"model", description.at("model")},
            {"tgd", record.at("build")},
            {"run", record.at("id")},
            {"step", record.at("own").at("digest_step")},
            {"digest", record.at("own").at("digest")},
            {"evaluation", std::move(evaluation)}};
  for (const auto& [key, value] : description.items())
    if (!json.contains(key)) json[key] = value;
  return json;
}

}  // namespace

Result<std::string> compose_model_json(const std::string& description, const std::string& record) {
  try {
    std::string text;
    write_lines(compose(Json::parse(description), Json::parse(record)), "", text);
    return text + "\n";
  } catch (const nlohmann::json::exception& error) {
    return Error{ErrorKind::kCorrupt, std::string("its description is none: ") + error.what()};
  }
}

}  // namespace tg::ctl

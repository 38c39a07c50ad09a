#include "ctl/fetch/model_json.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tg::ctl {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kMaxDepth = 32;  // levels of nesting

// Writes the members of an object or list, each on its own line.
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

// Limits the depth, because write_lines is recursive. No description is nested that deep.
Json parse(const std::string& text) {
  const auto bounded = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kMaxDepth) throw std::length_error("it is nested more than " + std::to_string(kMaxDepth) + " deep");
    return true;
  };
  return Json::parse(text, bounded);
}

Json compose(const Json& description, const Json& record, std::uint64_t best_step) {
  Json evaluation = record.at("evaluation");
  if (best_step > 0 && evaluation.is_object() && evaluation.at("step") != best_step)
    evaluation = {{"step", best_step}, {"accuracy", record.at("best_accuracy")}, {"loss", nullptr}};
  const Json& data = description.at("data");
  // Where damaged files are skipped, fewer were evaluated, and their number is unknown.
  if (evaluation.is_object() && data.at("damaged") != "skip") evaluation["samples"] = data.at("test_samples");
  Json json{{"model", description.at("model")},
            {"tgd", record.at("build")},
            {"run", record.at("id")},
            {"step", best_step > 0 ? Json(best_step) : record.at("own").at("digest_step")},
            {"digest", record.at("own").at("digest")},
            {"evaluation", std::move(evaluation)}};
  for (const auto& [key, value] : description.items())
    if (!json.contains(key)) json[key] = value;
  return json;
}

}  // namespace

Result<std::string> compose_model_json(const std::string& description, const std::string& record,
                                       std::uint64_t best_step) {
  try {
    std::string text;
    write_lines(compose(parse(description), parse(record), best_step), "", text);
    return text + "\n";
  } catch (const std::exception& error) {
    return Error{ErrorKind::kCorrupt, std::string("its description is not valid: ") + error.what()};
  }
}

}  // namespace tg::ctl

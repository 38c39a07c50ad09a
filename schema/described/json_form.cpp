#include "schema/described/json_form.h"

#include <chrono>
#include <cstdio>
#include <sstream>

#include "kernels/base/hex.h"
#include "kernels/base/log.h"
#include "schema/text.h"

namespace tg::schema {

// Refuses a text that format_utc would write differently.
std::optional<std::int64_t> from_utc(const std::string& text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, milli = 0, used = 0;
  const int read = std::sscanf(text.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &year, &month, &day, &hour, &minute,
                               &second, &milli, &used);
  if (read != 7 || used != 24 || text.size() != 24) return std::nullopt;
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok()) return std::nullopt;
  const auto whole_days = sys_days{date}.time_since_epoch();
  const std::int64_t unix_ms =
      duration_cast<milliseconds>(whole_days + hours{hour} + minutes{minute} + seconds{second}).count() + milli;
  return format_utc(unix_ms) == text ? std::optional(unix_ms) : std::nullopt;
}

JsonPlace json_place(const char* name, const Rule& rule, JsonView view) {
  std::string key = rule.json_name != nullptr ? rule.json_name : name;
  if (rule.json == Rule::Json::kTime && key.ends_with("_ms")) key.resize(key.size() - 3);
  if (rule.json_object == nullptr || (rule.only_kept_object && view == JsonView::kShown)) return {"", key};
  const std::string prefix = std::string(rule.json_object) + "_";
  return {rule.json_object, key.starts_with(prefix) ? key.substr(prefix.size()) : key};
}

OrderedJson number_to_json(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr); }

OrderedJson text_to_json(const std::string& text, const Rule& rule) {
  if (rule.text != Rule::Text::kLines) return clip_text(text, rule.max_bytes());
  OrderedJson lines = OrderedJson::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

OrderedJson time_to_json(std::int64_t unix_ms, JsonView view) {
  if (view == JsonView::kKept) return format_utc(unix_ms);
  if (unix_ms <= 0) return nullptr;
  std::string text = format_utc(unix_ms);  // 2026-11-23T04:52:10.123Z
  return text.replace(text.size() - 5, 4, "");
}

OrderedJson digest_to_json(std::uint64_t digest, JsonView view) {
  return digest == 0 && view == JsonView::kShown ? OrderedJson(nullptr) : OrderedJson(hex_digest(digest));
}

void JsonReader::set_problem(const std::string& key, std::string_view wanted) {
  if (problem_.empty()) problem_ = "field " + key + " is not " + std::string(wanted);
}

const OrderedJson* JsonReader::find_object(const std::string& key) {
  const auto found = from_.find(key);
  if (found == from_.end() || found->is_null()) return nullptr;
  if (found->is_object()) return &*found;
  set_problem(key, "an object");
  return nullptr;
}

const char* JsonReader::read(const OrderedJson& json, bool& value, const Rule&) {
  if (!json.is_boolean()) return "true or false";
  value = json.get<bool>();
  return nullptr;
}

const char* JsonReader::read(const OrderedJson& json, double& value, const Rule&) {
  if (!json.is_number() && !json.is_null()) return "a number";
  value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
  return nullptr;
}

const char* JsonReader::read(const OrderedJson& json, std::int64_t& value, const Rule& rule) {
  if (rule.json != Rule::Json::kTime) {
    if (!json.is_number_integer()) return "a whole number";
    value = json.get<std::int64_t>();
    return nullptr;
  }
  if (json.is_null() && rule.null_if_empty) return nullptr;
  if (!json.is_string()) return "a string";
  const std::optional<std::int64_t> parsed = from_utc(json.get_ref<const std::string&>());
  if (!parsed) return "a time like 2017-12-04T09:00:00.000Z";
  value = *parsed;
  return nullptr;
}

const char* JsonReader::read(const OrderedJson& json, std::string& value, const Rule& rule) {
  if (rule.text == Rule::Text::kLines) {
    if (!json.is_array()) return "a list of lines";
    for (const OrderedJson& line : json) {
      if (!line.is_string()) return "a list of lines";
      if (value.size() + 1 >= rule.max_bytes()) break;
      if (!value.empty()) value += '\n';
      value += clip_text(line.get_ref<const std::string&>(), rule.max_bytes() - value.size());
    }
    return nullptr;
  }
  if (!json.is_string()) return "a string";
  value = clip_text(json.get_ref<const std::string&>(), rule.max_bytes());
  if (rule.text == Rule::Text::kRunId && !is_run_id(json.get_ref<const std::string&>())) return "a run's id";
  if (rule.text == Rule::Text::kNodeName && !is_node_name(json.get_ref<const std::string&>())) return "a node's name";
  return nullptr;
}

const char* JsonReader::read_count(const OrderedJson& json, std::uint64_t& value, const Rule& rule) {
  if (rule.json == Rule::Json::kDigest) {
    if (!json.is_string()) return "a string";
    const std::optional<std::uint64_t> digest = parse_hex_digest(json.get_ref<const std::string&>());
    if (!digest) return "16 hexadecimal digits";
    value = *digest;
    return nullptr;
  }
  if (!json.is_number_unsigned()) return "a whole number";
  value = json.get<std::uint64_t>();
  if (rule.max == Rule::kUnbounded) return nullptr;
  if (value < static_cast<std::uint64_t>(rule.min) || value > static_cast<std::uint64_t>(rule.max))
    return "a whole number in bounds";
  return nullptr;
}

}  // namespace tg::schema

// A described struct (rule.h) as JSON. JsonView::kShown is what --json prints, JsonView::kKept what run.json keeps and
// is read from. A number that is not finite is null; digests are strings. Pure; any thread.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/base/status.h"
#include "kernels/base/words.h"
#include "schema/described/rule.h"

namespace tg::schema {

using OrderedJson = nlohmann::ordered_json;

// The place of a field in the form.
struct JsonPlace {
  std::string object;  // "" = the struct's own object
  std::string key;
};
JsonPlace json_place(const char* name, const Rule& rule, JsonView view);

OrderedJson number_to_json(double value);  // null if it is not finite
OrderedJson text_to_json(const std::string& text, const Rule& rule);
OrderedJson time_to_json(std::int64_t unix_ms, JsonView view);
std::optional<std::int64_t> from_utc(const std::string& text);  // inverse of format_utc (kernels/base/log.h)
OrderedJson digest_to_json(std::uint64_t digest, JsonView view);

template <Described T>
OrderedJson to_json(const T& it, JsonView view, bool measured = true);

class JsonWriter {
 public:
  // measured: true once the run has made its first step.
  JsonWriter(OrderedJson& to, JsonView view, bool measured) : to_(to), view_(view), measured_(measured) {}

  template <class T>
  void operator()(const char* name, const T& value, const Rule& rule = {}) {
    if (!rule.visible_in(view_)) return;
    const bool empty = is_empty(value);
    if (empty && rule.no_key_if_empty && view_ == JsonView::kKept) return;
    const JsonPlace place = json_place(name, rule, view_);
    OrderedJson& object = place.object.empty() ? to_ : to_[place.object];
    const bool unmeasured = rule.json == Rule::Json::kMeasured && view_ == JsonView::kShown && !measured_;
    const bool is_null = unmeasured || (empty && rule.null_if_empty);
    object[place.key] = is_null ? OrderedJson(nullptr) : form(value, rule);
  }

 private:
  template <class T>
  static bool is_empty(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) return value == 0;
    if constexpr (std::same_as<T, std::string>) return value.empty();
    return false;
  }
  template <class T>
  OrderedJson form(const T& value, const Rule& rule) const {
    if constexpr (Described<T>) {
      return to_json(value, view_, measured_);
    } else if constexpr (std::is_enum_v<T>) {
      return to_word(value);
    } else if constexpr (std::same_as<T, std::string>) {
      return text_to_json(value, rule);
    } else if constexpr (std::floating_point<T>) {
      return number_to_json(value);
    } else if constexpr (std::same_as<T, std::int64_t>) {
      return rule.json == Rule::Json::kTime ? time_to_json(value, view_) : OrderedJson(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return rule.json == Rule::Json::kDigest ? digest_to_json(value, view_) : OrderedJson(value);
    } else if constexpr (requires { typename T::mapped_type; }) {
      OrderedJson object = OrderedJson::object();
      for (const auto& [key, one] : value) object[key] = form(one, rule);
      return object;
    } else {
      OrderedJson array = OrderedJson::array();
      for (const auto& one : value) array.push_back(form(one, rule));
      return array;
    }
  }

  OrderedJson& to_;
  JsonView view_;
  bool measured_;
};

template <Described T>
OrderedJson to_json(const T& it, JsonView view, bool measured) {
  OrderedJson json = OrderedJson::object();
  fields(it, JsonWriter(json, view, measured));
  return json;
}

// Reads the JsonView::kKept form, and stores in `problem` the first field that is not valid. A text is cut to its
// bound.
class JsonReader {
 public:
  enum class Missing : std::uint8_t { kKeepDefault, kError };
  JsonReader(const OrderedJson& from, std::string& problem, Missing missing = Missing::kKeepDefault)
      : from_(from), problem_(problem), missing_(missing) {}

  template <class T>
  void operator()(const char* name, T& value, const Rule& rule = {}) {
    if (!rule.visible_in(JsonView::kKept)) return;
    const JsonPlace place = json_place(name, rule, JsonView::kKept);
    const OrderedJson* const object = place.object.empty() ? &from_ : find_object(place.object);
    const auto found = object == nullptr ? from_.end() : object->find(place.key);
    if (object == nullptr || found == object->end()) {
      if (missing_ == Missing::kError && !rule.no_key_if_empty) set_problem(place.key, "there");
      return;
    }
    if (const char* const wanted = read(*found, value, rule)) set_problem(place.key, wanted);
  }
  // "field KEY is not WANTED"
  void set_problem(const std::string& key, std::string_view wanted);

 private:
  const OrderedJson* find_object(const std::string& key);  // nullptr where it is absent or null

  // These return nullptr, or the form that the value should have.
  const char* read(const OrderedJson& json, bool& value, const Rule& rule);
  const char* read(const OrderedJson& json, double& value, const Rule& rule);
  const char* read(const OrderedJson& json, std::int64_t& value, const Rule& rule);
  const char* read(const OrderedJson& json, std::string& value, const Rule& rule);
  template <std::unsigned_integral T>
  const char* read(const OrderedJson& json, T& value, const Rule& rule) {
    std::uint64_t count = 0;
    if (const char* const wanted = read_count(json, count, rule)) return wanted;
    if (count > std::numeric_limits<T>::max()) return "a whole number of its size";
    value = static_cast<T>(count);
    return nullptr;
  }
  // An unknown word is a problem where the rule has a noun for it, else the value keeps its default.
  template <class T>
  requires std::is_enum_v<T>
  const char* read(const OrderedJson& json, T& value, const Rule& rule) {
    if (!json.is_string()) return "a string";
    const std::optional<T> known = from_word<T>(json.get_ref<const std::string&>());
    if (!known) return rule.json_noun;
    value = *known;
    return nullptr;
  }
  template <Described T>
  const char* read(const OrderedJson& json, T& value, const Rule&) {
    if (!json.is_object()) return "an object";
    fields(value, JsonReader(json, problem_, missing_));
    return nullptr;
  }
  template <class T>
  const char* read(const OrderedJson& json, std::vector<T>& values, const Rule& rule) {
    const char* const noun = rule.json_noun != nullptr ? rule.json_noun : "a list";
    if (!json.is_array() || json.size() > rule.max_items) return noun;
    for (const OrderedJson& one : json)
      if (read(one, values.emplace_back(), rule) != nullptr) return noun;
    return nullptr;
  }
  template <class T>
  const char* read(const OrderedJson& json, std::map<std::string, T>& values, const Rule& rule) {
    if (json.is_null()) return nullptr;
    if (!json.is_object()) return "an object";
    for (const auto& [key, one] : json.items())
      if (read(one, values[key], rule) != nullptr) return rule.json_noun;
    return nullptr;
  }
  static const char* read_count(const OrderedJson& json, std::uint64_t& value, const Rule& rule);

  const OrderedJson& from_;
  std::string& problem_;
  Missing missing_;
};

// The struct whose JsonView::kKept form is this text.
template <Described T>
Result<T> parse_kept(const std::string& text, JsonReader::Missing missing = JsonReader::Missing::kKeepDefault) {
  try {
    const OrderedJson json = OrderedJson::parse(text);
    if (!json.is_object()) return Error{ErrorKind::kCorrupt, "not a JSON object"};
    std::string problem;
    T it;
    fields(it, JsonReader(json, problem, missing));
    if (!problem.empty()) return Error{ErrorKind::kCorrupt, problem};
    return it;
  } catch (const std::exception& error) {
    return Error{ErrorKind::kCorrupt, error.what()};
  }
}

}  // namespace tg::schema

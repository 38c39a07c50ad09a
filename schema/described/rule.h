// A description of a struct that is sent or stored: one function beside the struct names its fields, and each of its
// forms follows from that (wire_form.h: Cap'n Proto; json_form.h: JSON; tests/schema/described.h: comparison and test
// values).
//
//   struct Share {
//     std::string node;
//     std::uint64_t samples = 0;
//   };
//   void fields(Is<Share> auto& it, auto&& field) {
//     field("node", it.node, node_name());
//     field("samples", it.samples);
//   }
//
// The name is the key in JSON and, in camelCase, the field in the .capnp. The rule says which values are valid, and how
// JSON shows them. Decoding checks the fields in this order and names the first that breaks its rule. A field that has
// no line here, or none in the .capnp, fails tests/schema/described_test.cpp.
// Pure; any thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "schema/limits.h"

namespace tg::schema {

// T or const T: one description for reading and writing.
template <class It, class T>
concept Is = std::same_as<std::remove_const_t<It>, T>;

// The two forms of JSON. A field is in both unless its rule says otherwise.
enum class JsonView : std::uint8_t { kShown, kKept };  // what --json prints; what run.json keeps

struct Rule {
  enum class Text : std::uint8_t {
    kLine,              // printable, at most `max` bytes; cut to that before it is sent
    kLines,             // the same with line breaks; never cut; in JSON a list of lines
    kMessage,           // cut and sent as one line, accepted with line breaks
    kNodeName,          // is_node_name
    kOptionalNodeName,  // or empty
    kRunId,             // is_run_id, which holds for file names too
    kOptionalRunId,     // or empty
    kBytes,             // any bytes
  };
  enum class Json : std::uint8_t {
    kPlain,
    kDigest,    // 16 hexadecimal digits; in kShown null for 0
    kTime,      // RFC 3339 from Unix milliseconds, without the name's _ms; in kShown whole seconds, null for 0
    kMeasured,  // in kShown null before the run's first step
  };

  Text text = Text::kLine;
  double min = 0, max = kUnbounded;  // bounds of a number, or of a text's bytes
  std::size_t max_items = 0;         // bound of a list
  const char* label = nullptr;       // in refusals; nullptr = the name, with spaces
  const char* list_label = nullptr;  // the same for a list as a whole
  Json json = Json::kPlain;
  const char* json_name = nullptr;    // nullptr = the name
  const char* json_object = nullptr;  // the object that has the key, without that prefix
  bool only_kept_object = false;      // json_object is for kKept only
  const char* json_noun = nullptr;    // "field members is not a list of names"
  bool shown = true, kept = true;     // views of JSON that have it
  bool null_if_empty = false;         // "" and 0 become null
  bool no_key_if_empty = false;       // null in kShown, no key in kKept

  static constexpr double kUnbounded = -1;

  constexpr Rule with(auto change) const {
    Rule rule = *this;
    change(rule);
    return rule;
  }
  constexpr Rule called(const char* name) const {
    return with([=](Rule& r) { r.label = name; });
  }
  constexpr Rule list_called(const char* name) const {
    return with([=](Rule& r) { r.list_label = name; });
  }
  constexpr Rule named(const char* key) const {
    return with([=](Rule& r) { r.json_name = key; });
  }
  constexpr Rule inside(const char* object) const {
    return with([=](Rule& r) { r.json_object = object; });
  }
  constexpr Rule kept_inside(const char* object) const {
    return inside(object).with([](Rule& r) { r.only_kept_object = true; });
  }
  constexpr Rule noun(const char* words) const {
    return with([=](Rule& r) { r.json_noun = words; });
  }
  constexpr Rule not_shown() const {
    return with([](Rule& r) { r.shown = false; });
  }
  constexpr Rule not_kept() const {
    return with([](Rule& r) { r.kept = false; });
  }
  constexpr Rule null() const {
    return with([](Rule& r) { r.null_if_empty = true; });
  }
  constexpr Rule no_key() const {
    return null().with([](Rule& r) { r.no_key_if_empty = true; });
  }
  constexpr Rule digest() const {
    return with([](Rule& r) { r.json = Json::kDigest; });
  }
  constexpr Rule time() const {
    return with([](Rule& r) { r.json = Json::kTime; });
  }
  constexpr Rule measured() const {
    return with([](Rule& r) { r.json = Json::kMeasured; });
  }
  constexpr std::size_t max_bytes() const { return static_cast<std::size_t>(max); }  // for a text
  constexpr bool visible_in(JsonView view) const { return view == JsonView::kShown ? shown : kept; }
};

// For any number, word, flag or described struct.
constexpr Rule plain() { return {}; }
constexpr Rule called(const char* name) { return Rule{}.called(name); }

constexpr Rule text_rule(Rule::Text kind, std::size_t max_bytes) {
  return Rule{.text = kind, .max = static_cast<double>(max_bytes)};
}
constexpr Rule line(std::size_t max_bytes) { return text_rule(Rule::Text::kLine, max_bytes); }
constexpr Rule lines(std::size_t max_bytes) { return text_rule(Rule::Text::kLines, max_bytes); }
constexpr Rule word() { return line(kMaxNameBytes); }
constexpr Rule node_name() { return text_rule(Rule::Text::kNodeName, kMaxNameBytes); }
constexpr Rule optional_node_name() { return text_rule(Rule::Text::kOptionalNodeName, kMaxNameBytes); }
constexpr Rule run_id() { return text_rule(Rule::Text::kRunId, kMaxRunIdBytes); }
constexpr Rule optional_run_id() { return text_rule(Rule::Text::kOptionalRunId, kMaxRunIdBytes); }
constexpr Rule bytes(std::size_t max_bytes) { return text_rule(Rule::Text::kBytes, max_bytes); }

// For a number from 0 (or min) to max; NaN is refused.
constexpr Rule up_to(double max) { return Rule{.max = max}; }
constexpr Rule between(double min, double max) { return Rule{.min = min, .max = max}; }
constexpr Rule real() { return up_to(kMaxReal); }

// For a list; the rule `each` holds for each element.
constexpr Rule list(std::size_t max_items, Rule each = {}) {
  each.max_items = max_items;
  return each;
}

struct AnyVisitor {
  void operator()(const char*, auto&, const Rule&) const {}
  void operator()(const char*, auto&) const {}
};
template <class T>
concept Described = requires(T& it, AnyVisitor visit) {
  fields(it, visit);
};

// The rule's label, else the name with spaces: "run id".
std::string label_of(const char* name, const Rule& rule);

}  // namespace tg::schema

// A struct that travels or is written down is described once: one function beside it names its fields, and every form
// of it follows from that (wire_form.h: Cap'n Proto; json_form.h: JSON; tests/schema/described.h: comparing and
// filling).
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
// The name is the key in JSON and, in camelCase, the field in the .capnp. The rule says what may travel, and how JSON
// shows it. Decoding checks the fields in this order and refuses the message by the first one that breaks its rule.
// A field that has no line here, or none in the .capnp, fails tests/schema/described_test.cpp.
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

// The forms of JSON. A field is in both unless its rule says otherwise.
enum class JsonView : std::uint8_t { kShown, kKept };  // what --json prints; what run.json keeps

struct Rule {
  enum class Text : std::uint8_t {
    kLine,           // printable, at most `most` bytes; cut to that before it is sent
    kLines,          // the same with line breaks; never cut. In JSON a list of lines
    kMessage,        // cut and sent as one line, taken with line breaks
    kNodeName,       // is_node_name
    kNodeNameOrNot,  // or empty
    kRunId,          // is_run_id; a file's name keeps that rule, too
    kRunIdOrNot,     // or empty
    kBytes,          // any bytes
  };
  enum class Json : std::uint8_t {
    kPlain,
    kDigest,    // 16 hexadecimal digits; where it is shown, null for 0
    kTime,      // RFC 3339 from Unix milliseconds, without the name's _ms; where it is shown, of seconds, null for 0
    kMeasured,  // where it is shown, null before the run's first step
  };

  Text text = Text::kLine;
  double least = 0, most = kUnbounded;  // of a number; of a text's bytes
  std::size_t most_items = 0;           // of a list
  const char* label = nullptr;          // in refusals; nullptr = the name, with spaces
  const char* list_label = nullptr;     // of the list as a whole
  Json json = Json::kPlain;
  const char* json_name = nullptr;    // nullptr = the name
  const char* json_object = nullptr;  // lies in an object of that name, without the name's prefix
  bool only_kept_object = false;      // but not where it is shown
  const char* json_noun = nullptr;    // "field members is not a list of names"
  bool shown = true, kept = true;     // in these views of JSON
  bool null_if_empty = false;         // "" and 0 are null
  bool no_key_if_empty = false;       // null where it is shown, no key where it is kept

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
  constexpr std::size_t most_bytes() const { return static_cast<std::size_t>(most); }  // of a text
  constexpr bool in(JsonView view) const { return view == JsonView::kShown ? shown : kept; }
};

// Any number, word, flag or described struct.
constexpr Rule plain() { return {}; }
constexpr Rule called(const char* name) { return Rule{}.called(name); }

constexpr Rule text_rule(Rule::Text kind, std::size_t most_bytes) {
  return Rule{.text = kind, .most = static_cast<double>(most_bytes)};
}
constexpr Rule line(std::size_t most_bytes) { return text_rule(Rule::Text::kLine, most_bytes); }
constexpr Rule lines(std::size_t most_bytes) { return text_rule(Rule::Text::kLines, most_bytes); }
constexpr Rule word() { return line(kMaxNameBytes); }
constexpr Rule node_name() { return text_rule(Rule::Text::kNodeName, kMaxNameBytes); }
constexpr Rule node_name_or_not() { return text_rule(Rule::Text::kNodeNameOrNot, kMaxNameBytes); }
constexpr Rule run_id() { return text_rule(Rule::Text::kRunId, kMaxRunIdBytes); }
constexpr Rule run_id_or_not() { return text_rule(Rule::Text::kRunIdOrNot, kMaxRunIdBytes); }
constexpr Rule bytes(std::size_t most_bytes) { return text_rule(Rule::Text::kBytes, most_bytes); }

// A number from 0 (or least) to most; what is no number is refused.
constexpr Rule up_to(double most) { return Rule{.most = most}; }
constexpr Rule between(double least, double most) { return Rule{.least = least, .most = most}; }
constexpr Rule real() { return up_to(kMaxReal); }

// A list of at most so many; each element keeps `each`.
constexpr Rule list(std::size_t most_items, Rule each = {}) {
  each.most_items = most_items;
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

// "run_id" as "run id", or what the rule calls it.
std::string label_of(const char* name, const Rule& rule);

}  // namespace tg::schema

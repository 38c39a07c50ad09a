#include "schema/described/wire_form.h"

#include "schema/text.h"

namespace tg::schema {
namespace {

std::string camel_case(const char* name) {
  std::string camel;
  for (const char* c = name; *c != '\0'; ++c) {
    if (*c == '_' && c[1] != '\0') {
      ++c;
      camel += static_cast<char>(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    } else {
      camel += *c;
    }
  }
  return camel;
}

}  // namespace

std::string label_of(const char* name, const Rule& rule) {
  std::string label = rule.label != nullptr ? rule.label : name;
  if (rule.label == nullptr)
    for (char& c : label)
      if (c == '_') c = ' ';
  return label;
}

capnp::StructSchema::Field wire_field(capnp::StructSchema schema, const char* name) {
  KJ_IF_MAYBE (field, schema.findFieldByName(camel_case(name).c_str())) return *field;
  TG_CHECK(false, name, schema.getShortDisplayName().cStr());
}

capnp::Text::Reader checked_for_sending(std::string& room, const std::string& text, const Rule& rule) {
  if (rule.text != Rule::Text::kLine && rule.text != Rule::Text::kMessage) return text_of(text);
  room = clip_text(text, rule.most_bytes());
  return text_of(room);
}

void PutWire::operator()(const char* name, const std::string& value, const Rule& rule) {
  if (rule.text == Rule::Text::kBytes) {
    TG_CHECK(value.size() <= rule.most_bytes(), name, value.size());
    to_.set(at(name), capnp::Data::Reader(reinterpret_cast<const kj::byte*>(value.data()), value.size()));
  } else {
    std::string room;
    to_.set(at(name), checked_for_sending(room, value, rule));
  }
}

void TakeWire::operator()(const char* name, std::string& value, const Rule& rule) {
  const std::string label = label_of(name, rule);
  value = rule.text == Rule::Text::kBytes ? take_bytes(get(name).as<capnp::Data>(), label.c_str(), rule)
                                          : take_text(get(name).as<capnp::Text>(), label.c_str(), rule);
}

std::string take_text(capnp::Text::Reader from, const char* label, const Rule& rule) {
  const std::string_view text(from.begin(), from.size());
  const auto refuse = [label](const std::string& why) { throw Odd{std::string(label) + " " + why}; };
  using Text = Rule::Text;
  switch (rule.text) {
    case Text::kLine:
    case Text::kLines:
    case Text::kMessage:
      if (text.size() > rule.most_bytes())
        refuse("has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(rule.most_bytes()));
      if (!(rule.text == Text::kLine ? is_printable(text) : is_printable_lines(text))) refuse("is not printable");
      break;
    case Text::kNodeName:
    case Text::kNodeNameOrNot:
      if (!is_node_name(text) && !(rule.text == Text::kNodeNameOrNot && text.empty())) refuse("is not a node's name");
      break;
    case Text::kRunId:
    case Text::kRunIdOrNot:
      if (!is_run_id(text) && !(rule.text == Text::kRunIdOrNot && text.empty())) refuse("is not a run's id");
      break;
    case Text::kBytes:
      TG_CHECK(false, label);
  }
  return std::string(text);
}

std::string take_bytes(capnp::Data::Reader data, const char* label, const Rule& rule) {
  checked_below(data.size(), rule.most_bytes() + 1, label);
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

double take_real(double value, const char* label, const Rule& rule) {
  if (rule.most == Rule::kUnbounded) return value;
  // Written so that what is not a number is refused, too.
  if (!(value >= 0 && value <= rule.most))
    throw Odd{std::string(label) + " is no number from 0 to " + std::to_string(rule.most)};
  if (value < rule.least) throw Odd{std::string(label) + " is too small"};
  return value;
}

std::uint64_t take_count(std::uint64_t value, const char* label, const Rule& rule) {
  if (rule.most == Rule::kUnbounded) return value;
  if (value < static_cast<std::uint64_t>(rule.least)) throw Odd{std::string(label) + " is " + std::to_string(value)};
  return checked_below(value, static_cast<std::uint64_t>(rule.most) + 1, label);
}

}  // namespace tg::schema

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

capnp::Text::Reader text_to_send(std::string& room, const std::string& text, const Rule& rule) {
  if (rule.text != Rule::Text::kLine && rule.text != Rule::Text::kMessage) return text_of(text);
  room = clip_text(text, rule.max_bytes());
  return text_of(room);
}

void WireWriter::operator()(const char* name, const std::string& value, const Rule& rule) {
  if (rule.text == Rule::Text::kBytes) {
    TG_CHECK(value.size() <= rule.max_bytes(), name, value.size());
    to_.set(at(name), capnp::Data::Reader(reinterpret_cast<const kj::byte*>(value.data()), value.size()));
  } else {
    std::string room;
    to_.set(at(name), text_to_send(room, value, rule));
  }
}

void WireReader::operator()(const char* name, std::string& value, const Rule& rule) {
  const std::string label = label_of(name, rule);
  value = rule.text == Rule::Text::kBytes ? read_bytes(get(name).as<capnp::Data>(), label.c_str(), rule)
                                          : read_text(get(name).as<capnp::Text>(), label.c_str(), rule);
}

std::string read_text(capnp::Text::Reader from, const char* label, const Rule& rule) {
  const std::string_view text(from.begin(), from.size());
  const auto refuse = [label](const std::string& why) { throw DecodeError{std::string(label) + " " + why}; };
  using Text = Rule::Text;
  switch (rule.text) {
    case Text::kLine:
    case Text::kLines:
    case Text::kMessage:
      if (text.size() > rule.max_bytes())
        refuse("has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(rule.max_bytes()));
      if (!(rule.text == Text::kLine ? is_printable(text) : is_printable_lines(text))) refuse("is not printable");
      break;
    case Text::kNodeName:
    case Text::kOptionalNodeName:
      if (!is_node_name(text) && !(rule.text == Text::kOptionalNodeName && text.empty()))
        refuse("is not a node's name");
      break;
    case Text::kRunId:
    case Text::kOptionalRunId:
      if (!is_run_id(text) && !(rule.text == Text::kOptionalRunId && text.empty())) refuse("is not a run's id");
      break;
    case Text::kBytes:
      TG_CHECK(false, label);
  }
  return std::string(text);
}

std::string read_bytes(capnp::Data::Reader data, const char* label, const Rule& rule) {
  checked_below(data.size(), rule.max_bytes() + 1, label);
  return {reinterpret_cast<const char*>(data.begin()), data.size()};
}

double read_real(double value, const char* label, const Rule& rule) {
  if (rule.max == Rule::kUnbounded) return value;
  // In this form the condition refuses NaN too.
  if (!(value >= 0 && value <= rule.max))
    throw DecodeError{std::string(label) + " is not a number from 0 to " + std::to_string(rule.max)};
  if (value < rule.min) throw DecodeError{std::string(label) + " is too small"};
  return value;
}

std::uint64_t read_count(std::uint64_t value, const char* label, const Rule& rule) {
  if (rule.max == Rule::kUnbounded) return value;
  if (value < static_cast<std::uint64_t>(rule.min))
    throw DecodeError{std::string(label) + " is " + std::to_string(value)};
  return checked_below(value, static_cast<std::uint64_t>(rule.max) + 1, label);
}

}  // namespace tg::schema

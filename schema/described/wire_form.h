// A described struct (rule.h) as Cap'n Proto, through the dynamic API: each field under its name in camelCase. A struct
// may be a group there, an enum a number or a word. Decoding throws DecodeError (wire.h) at the first field that breaks
// its rule, and where the struct's own std::string validation_error(const T&) is not empty. A name that the .capnp
// lacks is a bug and ends the process. Pure; any thread.
#pragma once

#include <capnp/dynamic.h>

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/words.h"
#include "schema/described/rule.h"
#include "schema/wire.h"

namespace tg::schema {

capnp::StructSchema::Field wire_field(capnp::StructSchema schema, const char* name);
capnp::Text::Reader text_to_send(std::string& room, const std::string& text, const Rule& rule);
std::string read_text(capnp::Text::Reader text, const char* label, const Rule& rule);
std::string read_bytes(capnp::Data::Reader data, const char* label, const Rule& rule);
double read_real(double value, const char* label, const Rule& rule);
std::uint64_t read_count(std::uint64_t value, const char* label, const Rule& rule);

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;
template <class T>
concept Word = std::is_enum_v<T>;

class WireWriter {
 public:
  explicit WireWriter(capnp::DynamicStruct::Builder to) : to_(to) {}

  void operator()(const char* name, const Number auto& value, const Rule& = {}) { to_.set(at(name), value); }
  template <Word Enum>
  void operator()(const char* name, const Enum& value, const Rule& = {}) {
    if (at(name).getType().isText()) {
      to_.set(at(name), to_word(value));
    } else {
      to_.set(at(name), static_cast<std::uint64_t>(value));
    }
  }
  void operator()(const char* name, const std::string& value, const Rule& rule);
  template <Described T>
  void operator()(const char* name, const T& value, const Rule& = {}) {
    fields(value, WireWriter(to_.init(at(name)).template as<capnp::DynamicStruct>()));
  }
  template <class T>
  void operator()(const char* name, const std::vector<T>& values, const Rule& rule = {}) {
    const auto count = static_cast<capnp::uint>(values.size());
    if constexpr (Word<T>) {  // one byte per value
      static_assert(sizeof(T) == 1);
      to_.set(at(name), capnp::Data::Reader(reinterpret_cast<const kj::byte*>(values.data()), count));
    } else {
      capnp::DynamicList::Builder list = to_.init(at(name), count).template as<capnp::DynamicList>();
      for (capnp::uint i = 0; i < count; ++i) {
        if constexpr (Described<T>) {
          fields(values[i], WireWriter(list[i].template as<capnp::DynamicStruct>()));
        } else if constexpr (std::same_as<T, std::string>) {
          std::string room;
          list.set(i, text_to_send(room, values[i], rule));
        } else {
          list.set(i, values[i]);
        }
      }
    }
  }

 private:
  capnp::StructSchema::Field at(const char* name) const { return wire_field(to_.getSchema(), name); }

  capnp::DynamicStruct::Builder to_;
};

template <Described T>
T read_fields(capnp::DynamicStruct::Reader from);

class WireReader {
 public:
  explicit WireReader(capnp::DynamicStruct::Reader from) : from_(from) {}

  template <Number T>
  void operator()(const char* name, T& value, const Rule& rule = {}) {
    value = number<T>(get(name), label_of(name, rule).c_str(), rule);
  }
  template <Word Enum>
  void operator()(const char* name, Enum& value, const Rule& rule = {}) {
    const std::string label = label_of(name, rule);
    if (wire_field(from_.getSchema(), name).getType().isText()) {
      const std::string read = read_text(get(name).as<capnp::Text>(), label.c_str(), tg::schema::word());
      const std::optional<Enum> known = from_word<Enum>(read);
      if (!known) throw DecodeError{label + " is " + read};
      value = *known;
    } else {
      value = checked_enum<Enum>(get(name).as<std::uint64_t>(), label.c_str());
    }
  }
  void operator()(const char* name, std::string& value, const Rule& rule);
  template <Described T>
  void operator()(const char* name, T& value, const Rule& = {}) {
    value = read_fields<T>(get(name).as<capnp::DynamicStruct>());
  }
  template <class T>
  void operator()(const char* name, std::vector<T>& values, const Rule& rule = {}) {
    const std::string label = label_of(name, rule);
    if constexpr (Word<T>) {
      for (const kj::byte one : get(name).as<capnp::Data>()) values.push_back(checked_enum<T>(one, label.c_str()));
    } else {
      const auto list = get(name).as<capnp::DynamicList>();
      if (rule.max_items > 0)
        checked_below(list.size(), rule.max_items + 1, label_of(name, Rule{.label = rule.list_label}).c_str());
      for (const capnp::DynamicValue::Reader one : list) {
        if constexpr (Described<T>) {
          values.push_back(read_fields<T>(one.as<capnp::DynamicStruct>()));
        } else if constexpr (std::same_as<T, std::string>) {
          values.push_back(read_text(one.as<capnp::Text>(), label.c_str(), rule));
        } else {
          values.push_back(number<T>(one, label.c_str(), rule));
        }
      }
    }
  }

 private:
  capnp::DynamicValue::Reader get(const char* name) const { return from_.get(wire_field(from_.getSchema(), name)); }
  template <Number T>
  static T number(const capnp::DynamicValue::Reader& value, const char* label, const Rule& rule) {
    if constexpr (std::floating_point<T>) {
      return static_cast<T>(read_real(value.as<double>(), label, rule));
    } else if constexpr (std::unsigned_integral<T> && !std::same_as<T, bool>) {
      return static_cast<T>(read_count(value.as<std::uint64_t>(), label, rule));
    } else {
      return value.as<T>();
    }
  }

  capnp::DynamicStruct::Reader from_;
};

template <Described T>
T read_fields(capnp::DynamicStruct::Reader from) {
  T value;
  fields(value, WireReader(from));
  if constexpr (requires { validation_error(value); })
    if (std::string why = validation_error(value); !why.empty()) throw DecodeError{std::move(why)};
  return value;
}

// Writes a variant as the union of a struct: its alternatives are the members in their order, append only.
template <Described Body>
void write_member(capnp::DynamicStruct::Builder to, std::size_t index, const Body& body) {
  const capnp::StructSchema::Field field = to.getSchema().getUnionFields()[static_cast<capnp::uint>(index)];
  if (field.getType().isVoid()) return to.set(field, capnp::VOID);
  fields(body, WireWriter(to.init(field).template as<capnp::DynamicStruct>()));
}
template <Described... Body>
void write_union(capnp::DynamicStruct::Builder to, const std::variant<Body...>& body) {
  std::visit([&](const auto& one) { write_member(to, body.index(), one); }, body);
}

// which: the union's discriminant as it was sent.
template <class... Body>
void read_union(capnp::DynamicStruct::Reader from, std::size_t which, std::variant<Body...>& body) {
  if (which >= sizeof...(Body)) throw DecodeError{"unknown union member " + std::to_string(which)};
  const capnp::StructSchema::Field field = from.getSchema().getUnionFields()[static_cast<capnp::uint>(which)];
  std::size_t index = 0;
  const auto read_if_chosen = [&]<class One>(std::in_place_type_t<One>) {
    if (index++ != which) return;
    if constexpr (Described<One>) {
      if (field.getType().isVoid())
        body.template emplace<One>();
      else
        body.template emplace<One>(read_fields<One>(from.get(field).as<capnp::DynamicStruct>()));
    }
  };
  (read_if_chosen(std::in_place_type<Body>), ...);
}

}  // namespace tg::schema

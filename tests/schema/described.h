// Helpers for tests of any described struct (schema/described/rule.h): fill every field with a distinct value, or with
// the largest that its rule allows; list all fields as text, to compare two values by name; count members.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/words.h"
#include "schema/described/rule.h"

namespace tg::schema {

class Fill {
 public:
  enum class How : std::uint8_t { kDistinct, kLargest };
  explicit Fill(std::uint64_t& count, How how = How::kDistinct) : count_(count), how_(how) {}

  template <class T>
  void operator()(const char*, T& value, const Rule& rule = {}) {
    set(value, rule);
  }

 private:
  void set(bool& value, const Rule&) { value = true; }
  template <std::floating_point T>
  void set(T& value, const Rule& rule) {
    value = static_cast<T>(rule.max == Rule::kUnbounded ? next() + 0.5
                                                        : rule.max * static_cast<double>(next() % 4096) / 4096);
  }
  template <std::unsigned_integral T>
  void set(T& value, const Rule& rule) {
    const std::uint64_t number = next();
    if (rule.max == Rule::kUnbounded) {
      value = static_cast<T>(sizeof(T) == 8 ? number << 40 | number : number);
    } else {
      const auto min = static_cast<std::uint64_t>(rule.min), max = static_cast<std::uint64_t>(rule.max);
      value = static_cast<T>(min + number % (max - min + 1));
    }
  }
  void set(std::int64_t& value, const Rule&) { value = 1'700'000'000'000 + static_cast<std::int64_t>(next()); }
  template <class T>
  requires std::is_enum_v<T>
  void set(T& value, const Rule&) { value = static_cast<T>(1 + next() % (words_of(T()).size() - 1)); }
  void set(std::string& value, const Rule& rule) {
    value = "n" + std::to_string(next());
    if (how_ == How::kLargest) value.resize(rule.max_bytes(), 'n');
    if (how_ == How::kDistinct && rule.text == Rule::Text::kLines) value += "\nm";
    if (how_ == How::kDistinct && rule.text == Rule::Text::kBytes) value += '\0';
  }
  template <Described T>
  void set(T& value, const Rule&) {
    fields(value, Fill(count_, how_));
  }
  template <class T>
  void set(std::vector<T>& values, const Rule& rule) {
    values.resize(how_ == How::kLargest && rule.max_items > 0 ? rule.max_items : 2);
    for (T& one : values) set(one, rule);
  }
  template <class T>
  void set(std::map<std::string, T>& values, const Rule& rule) {
    for (const char* const key : {"node-a", "node-b"}) set(values[key], rule);
  }
  std::uint64_t next() { return ++count_; }

  std::uint64_t& count_;
  How how_;
};

template <Described T>
T filled(Fill::How how = Fill::How::kDistinct) {
  T value;
  std::uint64_t count = 0;
  fields(value, Fill(count, how));
  return value;
}

using Told = std::map<std::string, std::string>;  // path -> value

class Tell {
 public:
  explicit Tell(Told& told, std::string path = "") : told_(told), path_(std::move(path)) {}

  template <class T>
  void operator()(const char* name, const T& value, const Rule& = {}) {
    tell(path_ + name, value);
  }

 private:
  template <class T>
  void tell(const std::string& path, const T& value) {
    if constexpr (Described<T>) {
      fields(value, Tell(told_, path + "."));
    } else if constexpr (std::same_as<T, std::string>) {
      told_[path] = value;
    } else if constexpr (std::floating_point<T>) {
      told_[path] = std::to_string(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    } else if constexpr (std::is_enum_v<T> || std::integral<T>) {
      told_[path] = std::to_string(static_cast<std::uint64_t>(value));
    } else if constexpr (requires { typename T::mapped_type; }) {
      for (const auto& [key, one] : value) tell(path + "[" + key + "]", one);
    } else {
      std::size_t i = 0;
      for (const auto& one : value) tell(path + "[" + std::to_string(i++) + "]", one);
    }
  }

  Told& told_;
  std::string path_;
};

template <Described T>
Told told(const T& value) {
  Told all;
  fields(value, Tell(all));
  return all;
}

// The rules by name, of the struct's own fields.
template <Described T>
std::map<std::string, Rule> rules_of() {
  std::map<std::string, Rule> rules;
  T value;
  fields(value, [&](const char* name, auto&, const Rule& rule = {}) { rules[name] = rule; });
  return rules;
}

struct AnyValue {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
// How many members an aggregate has.
template <class T, class... Values>
constexpr std::size_t member_count() {
  if constexpr (requires { T{Values()..., AnyValue()}; }) {
    return member_count<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

}  // namespace tg::schema

// Failures from outside, as values: an error carries its kind and one sentence that names the
// thing, the place and the next action. Our own bugs are not errors: see check.h.
// Immutable after construction; safe to pass between threads.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "kernels/base/check.h"
#include "kernels/base/words.h"

namespace tg {

// The kinds travel in control replies and decide tgctl's exit code. Append only.
enum class ErrorKind : std::uint16_t {
  kFailed = 0,       // something went wrong that fits no other kind
  kUsage = 1,        // the caller's input is wrong: unknown key, bad value
  kInvalidJob = 2,   // a job that cannot run: missing data, B < N, unknown model
  kUnreachable = 3,  // no daemon, or a peer that cannot be reached
  kNotFound = 4,     // no such run, node or file
  kRunFailed = 5,    // the run asked about ended FAILED
  kRefused = 6,      // the request is not allowed in the present state
  kCorrupt = 7,      // bytes that break their format
  kIo = 8,           // the file system refused
  kTimeout = 9,      // a deadline passed
  kForbidden = 10,   // a key that is not known here, or without the right
};
constexpr auto words_of(ErrorKind) {
  return words("failed", "usage", "invalid job", "unreachable", "not found", "run failed", "refused", "corrupt", "io",
               "timeout", "forbidden");
}

struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  std::string message;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : data_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : data_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return data_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    TG_CHECK(ok(), error().message);
    return std::get<0>(data_);
  }
  const T& value() const& {
    TG_CHECK(ok(), error().message);
    return std::get<0>(data_);
  }
  T&& value() && {
    TG_CHECK(ok(), error().message);
    return std::get<0>(std::move(data_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(data_); }

 private:
  std::variant<T, Error> data_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : failed_(true), error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !failed_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return error_; }

 private:
  bool failed_ = false;
  Error error_;
};

}  // namespace tg

// TG_CHECK(condition, values...): a bug in our own code stops the process, in release too, with the
// expression and its values on stderr. Never for anything a peer, a file or a user can cause.
#pragma once

#include <sstream>
#include <string>

namespace tg {

// Writes the text to stderr and aborts; an unread stderr delays that by a few seconds at most.
[[noreturn]] void abort_with(const std::string& text);

template <class... Values>
[[noreturn]] void check_failed(const char* expression, const char* file, int line, const Values&... values) {
  std::ostringstream text;
  text << "bug: " << expression << " is false at " << file << ':' << line << ';';
  ((text << ' ' << values), ...);
  abort_with(text.str());
}

}  // namespace tg

#define TG_CHECK(condition, ...)                                                     \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::tg::check_failed(#condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

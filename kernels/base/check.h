// TG_CHECK(condition, values...): a bug in our own code stops the process, in release too, with the
// expression and its values on stderr. Never for anything a peer, a file or a user can cause.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace tg {

template <class... Values>
[[noreturn]] void check_failed(const char* expression, const char* file, int line, const Values&... values) {
  std::ostringstream text;
  ((text << ' ' << values), ...);
  std::fprintf(stderr, "bug: %s is false at %s:%d;%s\n", expression, file, line, text.str().c_str());
  std::abort();
}

}  // namespace tg

#define TG_CHECK(condition, ...)                                                     \
  do {                                                                               \
    if (!(condition)) [[unlikely]]                                                   \
      ::tg::check_failed(#condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

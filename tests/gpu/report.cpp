#include "tests/gpu/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace tg::gpu {

std::string text(const char* format, ...) {
  char line[2000];
  va_list values;
  va_start(values, format);
  std::vsnprintf(line, sizeof line, format, values);
  va_end(values);
  return line;
}

double Report::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

bool Report::wanted(const std::string& name) const {
  if (std::find(options_.skip.begin(), options_.skip.end(), name) != options_.skip.end()) return false;
  return options_.only.empty() || std::any_of(options_.only.begin(), options_.only.end(),
                                              [&](const std::string& begin) { return name.rfind(begin, 0) == 0; });
}

void Report::run(const std::string& name, const std::function<std::string()>& check) {
  if (!wanted(name)) return;
  ++ran_;
  if (options_.list) {
    std::printf("%s\n", name.c_str());
    return;
  }
  const double begin = seconds();
  std::printf("begin %s\n", name.c_str());
  std::fflush(stdout);
  std::string found;
  const char* word = "ok";
  try {
    if (begin > options_.seconds) throw NotJudged("not run: no time was left");
    found = check();
  } catch (const NotJudged& why) {
    found = why.what();
    word = "none";
    judged_ = false;
  } catch (const std::exception& wrong) {
    found = wrong.what();
    word = "FAIL";
    failed_ = true;
  }
  std::printf("%s %s: %s, %.1f s\n", word, name.c_str(), found.c_str(), seconds() - begin);
  const bool failed = std::strcmp(word, "FAIL") == 0;
  if (failed && explain_) std::printf("%s\n", explain_().c_str());
  std::fflush(stdout);
  // The device is lost to this process, and all that follows here would fail too.
  if (failed && found.find("restart tgd") != found.npos) ::_exit(kLost);
}

}  // namespace tg::gpu

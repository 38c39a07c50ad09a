#include "ctl/terminal/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "ctl/format/progress.h"
#include "ctl/terminal/interrupt.h"

namespace tg::ctl {
namespace {

constexpr std::size_t kUsualColumns = 80;

std::size_t terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace

void print(const std::string& data) {
  std::fwrite(data.data(), 1, data.size(), stdout);
  std::fflush(stdout);
}

void say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

void warn(const std::string& line) { say("warning: " + line); }

int fail(const Error& error) {
  if (interrupted()) {
    say("interrupted");
    return kInterrupted;
  }
  say("tgctl: " + error.message);
  return exit_code(error.kind);
}

bool LiveLine::possible() { return isatty(STDERR_FILENO) == 1; }

void LiveLine::show(const std::string& line) {
  // The last column stays free: a terminal that wraps there would leave lines behind.
  std::fprintf(stderr, "\r%s\x1b[K", fit_line(line, terminal_columns() - 1).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void LiveLine::end() {
  if (shown_) std::fputc('\n', stderr);
  shown_ = false;
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

}  // namespace tg::ctl

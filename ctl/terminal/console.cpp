#include "ctl/terminal/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "ctl/format/table.h"
#include "ctl/terminal/interrupt.h"
#include "ctl/terminal/visible.h"

namespace tg::ctl {
namespace {

int write_error = 0;  // the first errno of stdout, 0 = all was written

winsize size_of(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size : winsize{};
}

void write_out(std::string_view data) {
  errno = 0;
  const bool taken = std::fwrite(data.data(), 1, data.size(), stdout) == data.size();
  if (std::fflush(stdout) == 0 && taken) return;
  if (write_error == 0) write_error = errno != 0 ? errno : EIO;
}

}  // namespace

void print(std::string_view data) { write_out(visible(data)); }

bool output_works() { return write_error == 0; }

int close_output(int code) {
  errno = 0;
  if (std::fclose(stdout) != 0 && write_error == 0) write_error = errno != 0 ? errno : EIO;
  if (write_error == 0) return code;
  print_note(std::string("tgctl: cannot write to stdout: ") + std::strerror(write_error));
  return code == kOk ? static_cast<int>(kError) : code;
}

void print_note(const std::string& line) { std::fprintf(stderr, "%s\n", visible(line).c_str()); }

void warn(const std::string& line) { print_note("warning: " + line); }

int fail(const Error& error) {
  if (interrupted()) {
    print_note("interrupted");
    return kInterrupted;
  }
  print_note("tgctl: " + error.message);
  return exit_code(error.kind);
}

bool LiveLine::possible() { return isatty(STDERR_FILENO) == 1; }

void LiveLine::show(const std::string& line) {
  std::fprintf(stderr, "\r%s\x1b[K", visible(line).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void LiveLine::end() {
  if (shown_) std::fputc('\n', stderr);
  shown_ = false;
}

std::size_t message_columns() {
  const winsize size = size_of(STDERR_FILENO);
  return size.ws_col > 0 ? size.ws_col : kColumns;
}

std::size_t data_columns() {
  if (isatty(STDOUT_FILENO) != 1) return kAnyColumns;
  const char* const set = std::getenv("COLUMNS");
  const std::size_t columns = set != nullptr ? std::strtoul(set, nullptr, 10) : 0;
  if (columns > 0 && columns < kAnyColumns) return std::max(columns, kMinColumns);
  const winsize size = size_of(STDOUT_FILENO);
  return size.ws_col > 0 ? std::max<std::size_t>(size.ws_col, kMinColumns) : kColumns;
}

}  // namespace tg::ctl

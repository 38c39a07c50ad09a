// tgctl's output: results go to stdout, messages to stderr. All text passes visible() here, so that no node, record or
// name can control the terminal. Main thread only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ctl/exit_code.h"
#include "kernels/base/status.h"

namespace tg::ctl {

// Writes to stdout and flushes. A failed write is remembered for close_output().
void print(std::string_view data);
bool output_works();  // false after a failed write
// Closes stdout. Returns the program's exit code: the given one, or that of an error if a write failed, which is
// printed.
int close_output(int code);
void print_note(const std::string& line);  // to stderr, as a line
void warn(const std::string& line);        // to stderr, "warning: ..."
// Prints the error, or "interrupted" after Ctrl-C, and returns the exit code.
int fail(const Error& error);

// A line on stderr that is overwritten in place. The last one stays.
class LiveLine {
 public:
  static bool possible();              // stderr is a terminal
  void show(const std::string& line);  // at most message_columns() - 1 wide
  void end();
  ~LiveLine() { end(); }

 private:
  bool shown_ = false;
};

// The width of the terminal on stderr, kColumns if it is not a terminal.
std::size_t message_columns();
// The width for stdout: COLUMNS, else the terminal's; kAnyColumns if it is not a terminal.
std::size_t data_columns();

}  // namespace tg::ctl

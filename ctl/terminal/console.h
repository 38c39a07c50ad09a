// Where tgctl's words go: stdout is data, stderr is talk. Whatever is printed or said is made visible() here, so that
// no node, record or name can steer the terminal. Main thread only.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "ctl/exit_code.h"
#include "kernels/base/status.h"

namespace tg::ctl {

// Writes to stdout and flushes. A failed write is remembered for close_output().
void print(std::string_view data);
bool output_works();  // all that was printed has been written
// The program's exit code: an error, said, where anything that was printed did not arrive; else the given code.
int close_output(int code);
void say(const std::string& line);   // stderr, a line
void warn(const std::string& line);  // stderr, "warning: ..."
// Says the error unless Ctrl-C was its cause, and gives its exit code.
int fail(const Error& error);

// One line on stderr that overwrites itself; ends with the line left standing.
class LiveLine {
 public:
  static bool possible();              // stderr is a terminal
  void show(const std::string& line);  // at most talk_columns() - 1 wide
  void end();
  ~LiveLine() { end(); }

 private:
  bool shown_ = false;
};

// The terminal's size: of stderr the width, default values if it is not a terminal.
std::size_t talk_columns();
// Of stdout: COLUMNS, else the terminal's; kAnyColumns where it is no terminal.
std::size_t data_columns();

}  // namespace tg::ctl

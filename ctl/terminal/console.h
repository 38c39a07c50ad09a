// Where tgctl's words go: stdout is data, stderr is talk. Main thread only.
#pragma once

#include <string>

#include "ctl/exit_code.h"
#include "kernels/base/status.h"

namespace tg::ctl {

void print(const std::string& data);  // stdout, flushed, as it is
void say(const std::string& line);    // stderr, a line
void warn(const std::string& line);   // stderr, "warning: ..."
// Says the error unless Ctrl-C was its cause, and gives its exit code.
int fail(const Error& error);

// One line on stderr that overwrites itself; ends with the line left standing.
class LiveLine {
 public:
  static bool possible();  // stderr is a terminal
  void show(const std::string& line);
  void end();
  ~LiveLine() { end(); }

 private:
  bool shown_ = false;
};

bool stdout_is_terminal();

}  // namespace tg::ctl

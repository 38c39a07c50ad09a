// The terminal as the live view has it: all of the screen, keys without echo. The only file that meets ncurses, whose
// state is the process's: one at a time, main thread only. Its end gives the terminal back as it was; so does abort().
// Signals that would end the process are kept for ended_by() meanwhile.
#pragma once

#include <csignal>
#include <vector>

#include "ctl/watch/screen.h"

namespace tg::ctl {

class Terminal {
 public:
  static bool possible();  // stdin and stdout are one, with a cursor that can be placed
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void measure(View& view) const;  // its size, and whether it takes UTF-8
  void draw(const std::vector<ScreenLine>& lines);
  int key(int wait_ms);  // a Key; kNoKey if none came in that time, or the size changed
  int ended_by() const;  // a signal, 0 = none; SIGHUP as well where the terminal is gone

 private:
  struct Kept {
    int signal;
    struct sigaction action;
  };
  std::vector<Kept> kept_;  // what was done on signals before
  bool colours_ = false;
  bool utf8_ = false;
};

}  // namespace tg::ctl

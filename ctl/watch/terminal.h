// The terminal of the live view: the full screen, keys without echo. Only terminal.cpp uses ncurses, which has one
// state per process, so there is one Terminal at a time; main thread only. The destructor restores the terminal, as
// does abort(). Until then, signals that would end the process are kept for ended_by().
#pragma once

#include <csignal>
#include <vector>

#include "ctl/watch/screen.h"

namespace tg::ctl {

class Terminal {
 public:
  static bool possible();  // stdin and stdout are a terminal with a cursor that can be placed
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void measure(View& view) const;  // its size, and whether it takes UTF-8
  void draw(const std::vector<ScreenLine>& lines);
  int key(int wait_ms);  // a Key; kNoKey after wait_ms, or if the size changed
  int ended_by() const;  // a signal, 0 = none; SIGHUP also if the terminal is gone

 private:
  struct Kept {
    int signal;
    struct sigaction action;
  };
  std::vector<Kept> kept_;  // the earlier signal handlers
  bool colours_ = false;
  bool utf8_ = false;
};

}  // namespace tg::ctl

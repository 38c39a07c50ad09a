#include "ctl/terminal/interrupt.h"

#include <poll.h>

#include <csignal>

namespace tg::ctl {
namespace {

volatile std::sig_atomic_t raised = 0;

void raise_flag(int) { raised = 1; }

}  // namespace

void catch_interrupt() {
  struct sigaction action {};
  action.sa_handler = raise_flag;
  sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // without SA_RESTART waits end
  sigaction(SIGINT, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit (ulimit -f) then fails the write
}

bool interrupted() { return raised != 0; }

void clear_interrupt() { raised = 0; }

bool sleep_unless_interrupted(int milliseconds) {
  if (!interrupted()) poll(nullptr, 0, milliseconds);
  return !interrupted();
}

}  // namespace tg::ctl

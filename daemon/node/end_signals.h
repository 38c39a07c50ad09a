// The signals that end a node: SIGTERM, SIGINT and, unless nohup ignores it, SIGHUP. A separate thread receives them,
// so that a thread that hangs cannot keep the node from ending: the time for an orderly shutdown is limited, then the
// process exits with status 1. Before wait() is called there is nothing to clean up, and the process exits at once.
// Constructed before every other thread, because threads inherit the signal mask.
#pragma once

#include <chrono>
#include <memory>

namespace tg::daemon {

class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Waits for a signal and returns its number. From then on the process has `timeout` to end.
  int wait(std::chrono::seconds timeout);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tg::daemon
